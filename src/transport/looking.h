// SPDX-License-Identifier: Apache-2.0
//
// How long whoever waits for messages goes on looking for them, before it sleeps or gives up. Between looks it gives way
// to those who share its core (sched_yield).
//
// Thread: the one that waits.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <utility>

#include "base/clock.h"

namespace tc::transport {

enum class Seen : uint8_t {
  nothing,    // give way, and look again
  something,  // or so it may be: see what it is
  too_long,   // sleep
  over,       // give up
};

class Looking {
 public:
  // How long to look before sleeping: shorter, and nodes that share a core with others fall asleep between two messages;
  // longer, and an idle node costs CPU (docs/measuring.md, "more processes than cores"). A time that follows what looking
  // brought was tried and was worse: 11.3 chases a second in place of 15 through 16 servers on two CPUs.
  static constexpr uint64_t before_sleep_ns = 200'000;
  // Giving way and looking again took longer: so many look in turn on our core that sleeping, and being woken, costs each
  // message less than their looks do (docs/measuring.md, "Turns").
  static constexpr uint64_t longest_turn_ns = 24'000;

  // `others_wait`: over as well when it is not zero; may be null, else it must outlive the wait.
  static Looking until(Deadline deadline, const std::atomic<int>* others_wait = nullptr) noexcept {
    return {deadline.at_ns(), no_time, others_wait};
  }
  // The clock is first read after the first look.
  static Looking for_ns(uint64_t time) noexcept { return {no_time, std::min(time, no_time), nullptr}; }

  // After a look that found nothing. `takes_turns`: looks ask the system, so that those of others on our core keep us
  // waiting. Never Seen::something.
  Seen go_on(bool takes_turns) noexcept {
    const auto before = std::exchange(now_, now_ns());
    const bool long_turn = takes_turns && now_ - before > longest_turn_ns;
    if (now_ >= end_ || long_turn || (others_wait_ != nullptr && others_wait_->load(std::memory_order_relaxed) != 0))
        [[unlikely]]
      return judge(long_turn);
    return Seen::nothing;
  }
  // Who sleeps for messages and for nothing else may do so when it is earlier than `before`, up to `until`.
  void let_nap(uint64_t before, uint64_t until) noexcept {
    nap_before_ = before;
    nap_until_ = until;
  }
  bool may_nap() const noexcept { return now_ < nap_before_; }
  Deadline nap_until() const noexcept { return Deadline::at_ns(std::min(nap_until_, deadline_)); }
  // After something was seen that was all dealt with: as a new one.
  void begin_anew() noexcept { end_ = 0; }
  // Of the last go_on().
  uint64_t now() const noexcept { return now_; }
  Deadline deadline() const noexcept { return Deadline::at_ns(deadline_); }

 private:
  static constexpr uint64_t no_time = uint64_t{1} << 62;

  Looking(uint64_t deadline, uint64_t time, const std::atomic<int>* others_wait) noexcept
      : deadline_(deadline), time_(time), others_wait_(others_wait) {}
  [[gnu::noinline]] Seen judge(bool long_turn) noexcept {
    const bool is_first = end_ == 0;
    if (is_first) {
      deadline_ = std::min(deadline_, now_ + time_);
      end_ = std::min(deadline_, now_ + before_sleep_ns);
    }
    if (now_ >= deadline_ || (others_wait_ != nullptr && others_wait_->load(std::memory_order_relaxed) != 0))
      return Seen::over;
    return now_ >= end_ || (long_turn && !is_first) ? Seen::too_long : Seen::nothing;
  }

  uint64_t now_ = 0;
  uint64_t end_ = 0;  // of looking, one way or the other; 0: the clock was not read yet
  uint64_t deadline_, time_;
  uint64_t nap_before_ = 0, nap_until_ = 0;
  const std::atomic<int>* others_wait_;
};

}  // namespace tc::transport
