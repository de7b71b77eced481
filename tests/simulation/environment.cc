// SPDX-License-Identifier: Apache-2.0
#include "simulation/environment.h"

#include <bit>
#include <span>
#include <utility>

#include "base/clock.h"
#include "base/no_memory.h"
#include "base/quiet_thread.h"
#include "base/random.h"

namespace tc::simulation {

namespace {
constexpr uint64_t beginning_ns = 1'000'000'000'000;
constexpr uint64_t look_takes_ns = 20;
constexpr int64_t beginning_s = 1'800'000'000;

uint64_t time = beginning_ns, skew = 0;
int64_t wall_jumps_s = 0;
Dice random_numbers(0);
}  // namespace

uint64_t Dice::skewed(uint64_t most) noexcept {
  const auto bits = below(static_cast<uint64_t>(std::bit_width(most)) + 1);
  const uint64_t number = bits == 0 ? 0 : (uint64_t{1} << (bits - 1)) + below(uint64_t{1} << (bits - 1));
  return number > most ? most : number;
}

void environment::reset(uint64_t seed) noexcept {
  time = beginning_ns;
  wall_jumps_s = 0;
  random_numbers = Dice(seed);
}

uint64_t environment::time_ns() noexcept { return time; }
void environment::advance_to(uint64_t time_ns) noexcept { time = time_ns > time ? time_ns : time; }
void environment::go_to(uint64_t time_ns) noexcept { time = time_ns; }
void environment::jump_wall_clock(int64_t seconds) noexcept { wall_jumps_s += seconds; }

environment::ClockOfNode::ClockOfNode(uint64_t skew_ns) noexcept : before_(std::exchange(skew, skew_ns)) {}
environment::ClockOfNode::~ClockOfNode() { skew = before_; }
uint64_t environment::skew_ns() noexcept { return skew; }

}  // namespace tc::simulation

namespace tc {

// To ask takes time, so that what loops until a time has passed comes to its end.
uint64_t now_ns() noexcept { return (simulation::time += simulation::look_takes_ns) + simulation::skew; }

int64_t wall_clock_s() noexcept {
  return simulation::beginning_s + simulation::wall_jumps_s +
         static_cast<int64_t>((simulation::time - simulation::beginning_ns) / 1'000'000'000);
}

void random_bytes(std::span<std::byte> bytes) noexcept {
  for (auto& byte : bytes) byte = static_cast<std::byte>(simulation::random_numbers.number());
}

// A node can live without its other threads.
Result<std::thread> quiet_thread(std::move_only_function<void()>) noexcept {
  return fail(error_in_any_case(TC_ERR_IO, "a simulated cluster has one thread"));
}

}  // namespace tc
