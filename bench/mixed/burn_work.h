// SPDX-License-Identifier: Apache-2.0
//
// How much work a call that computes does. Injected code has no clock, so the client counts rounds beforehand. Threads: any.
#pragma once

#include <cstdint>

namespace tc::bench {

struct BurnWork {
  uint64_t rounds = 0;
  uint64_t result = 0;  // which each answer must have

  // Rounds of burn() that take about this time on the calling thread's CPU. It measures for about 20 ms.
  static BurnWork of_us(uint64_t us);
};

}  // namespace tc::bench
