// SPDX-License-Identifier: Apache-2.0
//
// What the simulated cluster gets in place of the system's clock, its random numbers and its threads (base/clock.h,
// base/random.h, base/quiet_thread.h).
//
// Thread: one.
#pragma once

#include <cstdint>

namespace tc::simulation {

// Numbers from a seed: splitmix64.
class Dice {
 public:
  explicit Dice(uint64_t seed) noexcept : state_(seed) {}
  uint64_t number() noexcept {
    uint64_t z = state_ += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
  }
  // From 0 to `end` - 1.
  uint64_t below(uint64_t end) noexcept { return number() % end; }
  bool once_in(uint64_t times) noexcept { return below(times) == 0; }
  // Mostly small, up to `most`: each power of two is as likely as the next.
  uint64_t skewed(uint64_t most) noexcept;

 private:
  uint64_t state_;
};

namespace environment {

// Everything begins anew: the clock at its beginning, random numbers from this seed.
void reset(uint64_t seed) noexcept;
uint64_t time_ns() noexcept;
void advance_to(uint64_t time_ns) noexcept;
// Another node goes on, whose time may be an earlier one.
void go_to(uint64_t time_ns) noexcept;
// The wall clock is set.
void jump_wall_clock(int64_t seconds) noexcept;

// While it lives, now_ns() is that of a node whose clock differs by so much.
class ClockOfNode {
 public:
  explicit ClockOfNode(uint64_t skew_ns) noexcept;
  ~ClockOfNode();
  ClockOfNode(const ClockOfNode&) = delete;
  ClockOfNode& operator=(const ClockOfNode&) = delete;

 private:
  uint64_t before_;
};
// What now_ns() has more than time_ns().
uint64_t skew_ns() noexcept;

}  // namespace environment
}  // namespace tc::simulation
