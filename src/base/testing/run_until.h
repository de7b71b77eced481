// SPDX-License-Identifier: Apache-2.0
//
// For tests that drive everything on one thread: one step after the other until a condition holds. And limits of time
// for what can be judged by nothing else.
#pragma once

#include <sched.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "base/clock.h"

namespace tc::test {

// Upper limits of time are multiplied by this: how many processes want to run on each core of this machine, now or in
// the last minute, and TC_TIME_SCALE (for emulators). Lower limits never are. As slowness() of tests/kit/process.py.
inline uint64_t slowness() {
  double load = 0;
  unsigned running = 0;
  if (std::FILE* const file = std::fopen("/proc/loadavg", "r")) {
    if (std::fscanf(file, "%lf %*f %*f %u", &load, &running) != 2) load = 0;
    std::fclose(file);
  }
  cpu_set_t cpus;
  const bool known = ::sched_getaffinity(0, sizeof cpus, &cpus) == 0;
  const double wanted = std::max(load, static_cast<double>(running)) / (known ? CPU_COUNT(&cpus) : 1);
  const char* const scale = std::getenv("TC_TIME_SCALE");
  return static_cast<uint64_t>(std::max(1.0, wanted) * (scale != nullptr ? std::atof(scale) : 1.0) + 0.999);
}

// False when the condition does not hold in time. The condition is looked at before the first step.
template <class Condition, class Step>
bool run_until(Condition&& condition, Step&& step, uint64_t limit_ms = 20'000) {
  const auto deadline = Deadline::after_ms(limit_ms);
  while (!condition()) {
    if (deadline.passed()) return false;
    step();
  }
  return true;
}

}  // namespace tc::test
