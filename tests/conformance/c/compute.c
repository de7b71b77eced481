// SPDX-License-Identifier: Apache-2.0
// Computes what depends on how its thread rounds, and divides by zero.
#include <threechains/ifunc.h>

void compute_main(void *payload, size_t payload_size, void *target_args) {
  (void)payload, (void)payload_size, (void)target_args;
  volatile double one = 1, three = 3, zero = 0, small = 1e-310;
  volatile float part = 1;
  volatile long double whole = 1;
  for (volatile uint64_t i = 0; i < 2000000; ++i) continue;
  const union {
    double number;
    uint64_t bits;
  } third = {one / three}, minus = {-one / three}, infinite = {one / zero}, half = {small / 2};
  const uint64_t answer[] = {third.bits,
                             minus.bits,
                             infinite.bits,
                             half.bits,
                             (uint64_t)(part / 3 * 1e9f),
                             (uint64_t)(whole / 3 * 1e19L),
                             (uint64_t)(whole / (long double)zero > 1)};
  tc_reply(answer, sizeof answer);
}
