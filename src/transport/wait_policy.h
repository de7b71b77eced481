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

  // `others_wait`: give up as well when it is not zero. May be null, else it must outlive the wait.
  static WaitPolicy until(Deadline deadline, const std::atomic<int>* others_wait = nullptr) noexcept {
    return {deadline.at_ns(), no_time, others_wait};
  }
  // The clock is first read after the first poll.
  static WaitPolicy for_ns(uint64_t time) noexcept { return {no_time, std::min(time, no_time), nullptr}; }

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
    if (before - start_ >= polling_ns) return Next::block;
    ::sched_yield();
    if (asks_system) {
      const uint64_t yielded = now_ns() - before;
      if (yielded > crowded_yield_ns) return Next::block;
      if (yielded < lonely_yield_ns) skip_ = polls_alone - 1;
    }
    return Next::poll;
  }
  Deadline deadline() const noexcept { return Deadline::at_ns(deadline_); }

 private:
  static constexpr uint64_t no_time = uint64_t{1} << 62;

  WaitPolicy(uint64_t deadline, uint64_t time, const std::atomic<int>* others_wait) noexcept
      : deadline_(deadline), time_(time), others_wait_(others_wait) {}
  void begin(uint64_t now) noexcept {
    start_ = now;
    deadline_ = std::min(deadline_, now + time_);
  }

  uint64_t start_ = 0;  // of polling; 0: the clock was not read yet
  uint64_t deadline_, time_;
  unsigned skip_ = 0;
  const std::atomic<int>* others_wait_;
};

}  // namespace tc::transport
