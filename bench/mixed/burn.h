/* SPDX-License-Identifier: Apache-2.0 */
/* The work of a long call of `ifunc bench mixed`: the same in the ifunc and in the handlers that it is measured beside. */
#pragma once

#include <stdint.h>

/* Each round needs the result of the last one, so that no compiler shortens the work. */
static inline uint64_t burn(uint64_t rounds) {
  uint64_t value = 0x9e3779b97f4a7c15u;
  for (uint64_t i = 0; i < rounds; ++i) {
    value ^= value << 13;
    value ^= value >> 7;
    value ^= value << 17;
  }
  return value;
}
