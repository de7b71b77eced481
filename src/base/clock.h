// SPDX-License-Identifier: Apache-2.0
//
// Time for deadlines and measurements: monotonic, in nanoseconds. Threads: any.
#pragma once

#include <time.h>

#include <cstdint>

namespace tc {

inline uint64_t now_ns() noexcept {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<uint64_t>(t.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(t.tv_nsec);
}

// A point in time after which a wait gives up. `after_ms(0)` has passed at once: it makes a wait a poll.
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
