// SPDX-License-Identifier: Apache-2.0
#include "capi/progress.h"

#include <sched.h>

#include <chrono>
#include <system_error>

#include "base/quiet_thread.h"

namespace tc::capi {

namespace {

constexpr uint64_t longest_hold_ms = 100;

}  // namespace

Status Progress::start() {
  if (runs()) return fail(TC_ERR_INVALID, "the progress thread runs already");
  TC_CHECK(node_.can_wait_for("a progress thread"));  // whoever polls now would go on without the lock
  stopping_ = false;
  gate_.set_shared(true);
  try {
    thread_ = quiet_thread([this] { run(); });
  } catch (const std::system_error& error) {
    gate_.set_shared(false);
    return fail(TC_ERR_IO, "cannot start a thread: {}", error.what());
  }
  return {};
}

Status Progress::stop() {
  if (!runs()) return {};
  {
    const Gate::Pass pass(gate_, node_);
    TC_CHECK(node_.can_wait_for("the end of the progress thread"));
  }
  stopping_ = true;
  node_.wake();
  thread_.join();
  gate_.set_shared(false);
  return {};
}

void Progress::run() {
  while (!stopping_.load(std::memory_order_relaxed)) {
    while (gate_.waiting().load(std::memory_order_relaxed) != 0) ::sched_yield();
    gate_.mutex_.lock();
    try {
      node_.wait(Deadline::after_ms(longest_hold_ms), &gate_.waiting());
      node_.expire();
    } catch (const std::bad_alloc&) {  // nobody to tell; what it cost has been told to whom it concerned
    }
    gate_.leave(node_);
  }
}

bool Progress::wait_until(Deadline deadline, const std::function<bool()>& done) {
  Gate::Entry entry(gate_, node_);
  std::unique_lock lock(entry);
  while (!done()) {
    if (deadline.passed()) return false;
    // Bounded, as a deadline of the future itself passes without any event.
    gate_.happened_.wait_for(lock, std::chrono::nanoseconds(std::min<uint64_t>(deadline.remaining_ns(), 20'000'000)));
  }
  return true;
}

}  // namespace tc::capi
