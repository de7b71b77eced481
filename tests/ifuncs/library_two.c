// SPDX-License-Identifier: Apache-2.0
//
// The second version: it computes something else.
#include <stdint.h>

const char greeting_version[] = "two";
uint32_t greeting_calls;

uint32_t greeting_compute(uint32_t value) {
  ++greeting_calls;
  return value + 1000;
}
