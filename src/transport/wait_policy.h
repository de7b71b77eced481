// SPDX-License-Identifier: Apache-2.0
//
// How a thread waits for messages: it polls, yields the core between polls, and blocks when that took too long. One
// policy for all transports; docs/measuring.md ("Waiting") has the measurements behind its numbers.
//
// Thread: the one that waits.
#pragma once

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "base/clock.h"

namespace tc::transport {

// What a thread has learned about its core by waiting. Beside a thread that computes, a yield lasts as long as the turn of that
// one: some milliseconds. Who blocks is woken at once.
class Core {
 public:
  bool is_busy(uint64_t now) const noexcept { return now < busy_until_ns_; }
  void note_busy(uint64_t now) noexcept { busy_until_ns_ = now + believed_ns; }
  static constexpr uint64_t believed_ns = 100'000'000;

 private:
  uint64_t busy_until_ns_ = 0;
};

class WaitPolicy {
 public:
  enum class Next : uint8_t { poll, block, give_up };

  // How long to poll before blocking. Shorter, and nodes that share a core with others block between two messages;
  // longer, and an idle node costs CPU.
  static constexpr uint64_t polling_ns = 200'000;
  // A yield that took longer shows that many threads poll in turn on this core. Then blocking and being woken costs a
  // message less than the polls of the others do.
  static constexpr uint64_t crowded_yield_ns = 24'000;
  // A yield that took less found no other thread on the core: the next ones can be left out.
  static constexpr uint64_t lonely_yield_ns = 1'000;
  static constexpr unsigned polls_alone = 8;
  // A yield that took longer was to a thread that computes.
  static constexpr uint64_t busy_yield_ns = 1'000'000;

  // `core` must outlive the wait. `others_wait`: give up as well when it is not zero. May be null, else it must outlive the
  // wait.
  static WaitPolicy until(Core& core, Deadline deadline, const std::atomic<int>* others_wait = nullptr) noexcept {
    return {core, deadline.at_ns(), no_time, others_wait};
  }
  // The clock is first read after the first poll.
  static WaitPolicy for_ns(Core& core, uint64_t time) noexcept {
    return {core, no_time, std::min(time, no_time), nullptr};
  }

  // Call after a poll that found nothing. `asks_system`: a poll is a system call. Then the polls of other threads on
  // our core delay us noticeably, so the length of a yield matters.
  Next after_empty_poll(bool asks_system) noexcept {
    if (others_wait_ != nullptr && others_wait_->load(std::memory_order_relaxed) != 0) return Next::give_up;
    if (skip_ != 0) {
      --skip_;
      return Next::poll;
    }
    const uint64_t before = now_ns();
    if (start_ == 0) begin(before);
    if (before >= deadline_) return Next::give_up;
    if (before - start_ >= polling_ns || core_.is_busy(before)) return Next::block;
    ::sched_yield();
    const uint64_t after = now_ns(), yielded = after - before;
    if (yielded > busy_yield_ns) {
      core_.note_busy(after);
      return Next::block;
    }
    if (asks_system) {
      if (yielded > crowded_yield_ns) return Next::block;
      if (yielded < lonely_yield_ns) skip_ = polls_alone - 1;
    }
    return Next::poll;
  }
  Deadline deadline() const noexcept { return Deadline::at_ns(deadline_); }

 private:
  static constexpr uint64_t no_time = uint64_t{1} << 62;

  WaitPolicy(Core& core, uint64_t deadline, uint64_t time, const std::atomic<int>* others_wait) noexcept
      : core_(core), deadline_(deadline), time_(time), others_wait_(others_wait) {}
  void begin(uint64_t now) noexcept {
    start_ = now;
    deadline_ = std::min(deadline_, now + time_);
  }

  Core& core_;
  uint64_t start_ = 0;  // of polling; 0: the clock was not read yet
  uint64_t deadline_, time_;
  unsigned skip_ = 0;
  const std::atomic<int>* others_wait_;
};

}  // namespace tc::transport
