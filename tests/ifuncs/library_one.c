// SPDX-License-Identifier: Apache-2.0
//
// The first version of a library: a function, and data that belongs to it.
#include <stdint.h>

const char greeting_version[] = "one";
uint32_t greeting_calls;

static uint32_t twice(uint32_t value) { return 2 * value; }
uint32_t greeting_compute(uint32_t value) {
  ++greeting_calls;
  return twice(value);
}
