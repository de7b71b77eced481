// SPDX-License-Identifier: Apache-2.0
#include "capi/progress.h"

#include <sched.h>

#include <chrono>
#include <system_error>

#include "base/quiet_thread.h"

namespace tc::capi {

namespace {

constexpr uint64_t longest_hold_ms = 100;

std::chrono::nanoseconds longest_pause(Deadline deadline) noexcept {
  return std::chrono::nanoseconds(std::min<uint64_t>(deadline.remaining_ns(), 20'000'000));
}

}  // namespace

Status Progress::start() {
  if (runs()) return fail(TC_ERR_INVALID, "the progress thread runs already");
  TC_CHECK(node_.can_wait_for("a progress thread"));  // a thread that polls now would go on without the lock
  stopping_ = false;
  node_.set_pause([this](Deadline deadline) { pause(deadline); });
  gate_.set_shared(true);
  try {
    thread_ = quiet_thread([this] { run(); });
  } catch (const std::system_error& error) {
    gate_.set_shared(false);
    node_.set_pause({});
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
  node_.set_pause({});
  return {};
}

bool Progress::end_with(std::function<void()> last) noexcept {
  if (thread_.get_id() != std::this_thread::get_id()) return false;
  last_ = std::move(last);
  stopping_ = true;
  return true;
}

void Progress::run() {
  while (!stopping_.load(std::memory_order_relaxed)) {
    while (gate_.waiting().load(std::memory_order_relaxed) != 0) ::sched_yield();
    gate_.mutex_.lock();
    try {
      node_.wait(Deadline::after_ms(longest_hold_ms), &gate_.waiting());
      node_.expire();
    } catch (const std::bad_alloc&) {  // the node has reported the failure to the calls that it affects
    }
    gate_.leave(node_);
  }
  if (!last_) return;
  const auto last = std::move(last_);
  thread_.detach();  // nobody can join it, because `last` destroys this object
  last();
}

// The wait is bounded, because no event reports room that a peer makes or the deadline of a future.
void Progress::pause(Deadline deadline) {
  if (deadline.passed()) {
    if (gate_.waiting().load(std::memory_order_relaxed) == 0) return void(::sched_yield());
    gate_.leave(node_);
    while (gate_.waiting().load(std::memory_order_relaxed) != 0) ::sched_yield();
    gate_.lock(node_);
    return;
  }
  Gate::Entry entry(gate_, node_);
  std::unique_lock lock(entry, std::adopt_lock);
  ++gate_.listeners_;
  gate_.happened_.wait_for(lock, longest_pause(deadline));
  --gate_.listeners_;
  lock.release();  // the caller still holds the gate
}

bool Progress::wait_until(Deadline deadline, const std::function<bool()>& done) {
  Gate::Entry entry(gate_, node_);
  std::unique_lock lock(entry);
  while (!done()) {
    if (deadline.passed()) return false;
    gate_.happened_.wait_for(lock, longest_pause(deadline));
  }
  return true;
}

}  // namespace tc::capi
