// SPDX-License-Identifier: Apache-2.0
//
// The clock of a program of tests, in place of base/clock.cc: the machine's, and the time that was let pass.
//
// Thread: any.
#include "base/clock.h"

#include <time.h>

#include <atomic>

#include "node/testing/node_test_kit.h"

namespace {
std::atomic<uint64_t> passed_ns = 0, stopped_at_ns = 0;  // 0: it goes

uint64_t machine_ns() noexcept {
  timespec time;
  ::clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(time.tv_nsec);
}
}  // namespace

namespace tc {

uint64_t now_ns() noexcept {
  const uint64_t stopped = stopped_at_ns;
  return (stopped != 0 ? stopped : machine_ns()) + passed_ns;
}

int64_t wall_clock_s() noexcept { return ::time(nullptr) + static_cast<int64_t>(passed_ns / 1'000'000'000u); }

void node::test::let_pass(std::chrono::milliseconds time) noexcept {
  passed_ns += static_cast<uint64_t>(time.count()) * 1'000'000u;
}

node::test::StoppedClock::StoppedClock() noexcept { stopped_at_ns = machine_ns(); }
node::test::StoppedClock::~StoppedClock() { stopped_at_ns = 0; }

}  // namespace tc
