// SPDX-License-Identifier: Apache-2.0
//
// The one place that asks the system for the time. A test can define both functions itself to have a clock of its own.
// The linker then leaves these definitions out, because clock.cc has nothing else.
//
// Threads: any.
#pragma once

#include <cstdint>

namespace tc {

// Monotonic time, for deadlines and measurements.
uint64_t now_ns() noexcept;
// Seconds since 1970, like the times of files.
int64_t wall_clock_s() noexcept;

// The time when a wait gives up. after_ms(0) has passed at once, so a wait with it only polls.
class Deadline {
 public:
  static Deadline never() noexcept { return Deadline(UINT64_MAX); }
  static Deadline after_ms(uint64_t ms) noexcept { return Deadline(now_ns() + ms * 1'000'000u); }
  static Deadline at_ns(uint64_t ns) noexcept { return Deadline(ns); }
  bool passed() const noexcept { return now_ns() >= at_; }
  uint64_t remaining_ns() const noexcept {
    const auto now = now_ns();
    return now >= at_ ? 0 : at_ - now;
  }
  uint64_t at_ns() const noexcept { return at_; }

 private:
  explicit Deadline(uint64_t at) noexcept : at_(at) {}
  uint64_t at_;
};

}  // namespace tc
