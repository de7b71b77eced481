// SPDX-License-Identifier: Apache-2.0
#include "capi/progress.h"

#include <sched.h>

#include <algorithm>
#include <chrono>

#include "base/fatal_signals.h"
#include "base/quiet_thread.h"

namespace tc::capi {

namespace {

constexpr uint64_t longest_hold_ms = 100;
// With Waiters::poll. A node is unused after this: between two calls of a program lie microseconds, and waking the progress
// thread costs fifty. But on a machine with more threads than cores, a thread that is busy can be away for milliseconds.
constexpr uint64_t unused_after_ns = 20'000'000;
// How long the progress thread sleeps between two polls meanwhile: soon after a use, later, and while another thread polls.
constexpr uint64_t soon_ns = 1'000'000;
constexpr std::chrono::microseconds short_sleep{50};
constexpr std::chrono::microseconds medium_sleep{200};
constexpr std::chrono::microseconds long_sleep{1000};
// Most answers come within this. A thread that yields its core can be without it for milliseconds on a busy machine.
constexpr uint64_t keep_core_ns = 10'000;
constexpr int polls_between_clocks = 16;

std::chrono::nanoseconds longest_pause(Deadline deadline) noexcept {
  return std::chrono::nanoseconds(std::min<uint64_t>(deadline.remaining_ns(), 20'000'000));
}

}  // namespace

Status Progress::start(Waiters waiters) {
  if (runs()) return fail(TC_ERR_INVALID, "the progress thread runs already");
  TC_CHECK(node_.can_wait_for("a progress thread"));  // a thread that polls now would go on without the lock
  stopping_ = false;
  waiters_ = waiters;
  node_.set_pause([this](Deadline deadline) { pause(deadline); });
  gate_.set_shared(true);
  auto thread = quiet_thread([this] { run(); });
  if (!thread) {
    gate_.set_shared(false);
    node_.set_pause({});
    return context("cannot start a progress thread", std::move(thread).error());
  }
  thread_ = std::move(*thread);
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
  if (!runs() || (node_.is_polling() && thread_.get_id() != std::this_thread::get_id())) return false;
  last_ = std::move(last);
  stopping_ = true;
  node_.wake();
  return true;
}

void Progress::run() {
  have_alternate_stack();
  while (!stopping_.load()) {  // with what end_with() wrote
    if (waiters_ == Waiters::poll) stand_back();
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

// Until the program does not use the node any more. It polls in between, for futures that no thread waits for.
void Progress::stand_back() {
  while (!stopping_.load(std::memory_order_relaxed)) {
    const auto now = now_ns();
    const bool polled = polled_.load(std::memory_order_relaxed);
    if (const auto uses = gate_.uses_.load(std::memory_order_relaxed); polled || uses != uses_) {
      uses_ = uses;
      used_ns_ = now;
    } else if (now - used_ns_ > unused_after_ns) {
      return;
    }
    if (!polled && gate_.mutex_.try_lock()) {
      try {
        node_.poll();
        node_.expire();
      } catch (const std::bad_alloc&) {  // as in run()
      }
      gate_.leave(node_);
    }
    std::this_thread::sleep_for(polled ? long_sleep : now - used_ns_ < soon_ns ? short_sleep : medium_sleep);
  }
}

// The wait is bounded, because no event reports room that a peer makes or the deadline of a future.
void Progress::pause(Deadline deadline) {
  if (!deadline.passed()) {
    if (may_poll_here()) return poll_here(deadline);
    ++gate_.listeners_;
    sleep_until_notified(deadline);
    --gate_.listeners_;
  } else if (gate_.waiting().load(std::memory_order_relaxed) == 0) {
    ::sched_yield();
  } else {
    let_others_in();
  }
}

bool Progress::wait_until(Deadline deadline, FunctionRef<bool()> done) {
  while (!done()) {
    if (may_poll_here())
      poll_here(deadline);  // once, when the deadline has passed
    else if (!deadline.passed())
      sleep_until_notified(deadline);
    if (deadline.passed()) return done();
  }
  return true;
}

// Polls in the place of the progress thread until something has happened, and notifies the other threads that wait.
void Progress::poll_here(Deadline deadline) {
  struct Polled {
    std::atomic<bool>& flag;
    explicit Polled(std::atomic<bool>& raised) : flag(raised) { flag = true; }
    ~Polled() { flag = false; }
  } const polled(polled_);  // also while others are let in, so that one that comes to wait does not take turns with us
  if (poll_briefly() == 0 && node_.wait(deadline, &gate_.waiting()) == 0) node_.expire();
  if (gate_.has_news(node_)) gate_.happened_.notify_all();
  if (gate_.waiting().load(std::memory_order_relaxed) != 0) let_others_in();
}

// Without giving up the core. Returns how much happened.
size_t Progress::poll_briefly() {
  for (const auto until = now_ns() + keep_core_ns; now_ns() < until;)
    for (int polls = 0; polls < polls_between_clocks; ++polls) {
      if (const auto happened = node_.poll(); happened != 0) return happened;
      if (gate_.waiting().load(std::memory_order_relaxed) != 0) return 0;
    }
  return 0;
}

// Gives the gate up meanwhile.
void Progress::sleep_until_notified(Deadline deadline) {
  Gate::Lock gate_lock(gate_, node_);
  std::unique_lock lock(gate_lock, std::adopt_lock);
  gate_.happened_.wait_for(lock, longest_pause(deadline));
  lock.release();  // the caller still holds the gate
}

void Progress::let_others_in() {
  gate_.leave(node_);
  while (gate_.waiting().load(std::memory_order_relaxed) != 0) ::sched_yield();
  gate_.lock(node_);
}

}  // namespace tc::capi
