// SPDX-License-Identifier: Apache-2.0
#include "base/clock.h"

#include <time.h>

namespace tc {

uint64_t now_ns() noexcept {
  timespec time;
  ::clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(time.tv_nsec);
}

int64_t wall_clock_s() noexcept { return ::time(nullptr); }

}  // namespace tc
