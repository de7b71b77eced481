// SPDX-License-Identifier: Apache-2.0
// Changes how its thread computes, in the way that the payload names, and leaves it so.
#define _GNU_SOURCE
#include <fenv.h>
#include <threechains/ifunc.h>

void disturb_main(void *payload, size_t payload_size, void *target_args) {
  (void)payload_size, (void)target_args;
  static const int rounding[] = {FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};
  const uint64_t n = *(const uint64_t *)payload;
  if (n < 3) fesetround(rounding[n]);
#ifdef __x86_64__
  if (n == 3) __builtin_ia32_ldmxcsr(__builtin_ia32_stmxcsr() | 0x8040);  // small numbers count as zero
#endif
  if (n == 4) feenableexcept(FE_DIVBYZERO | FE_INVALID | FE_OVERFLOW | FE_UNDERFLOW | FE_INEXACT);
  // Long enough for a node to give it to another thread next time.
  for (volatile uint64_t i = 0; i < 2000000; ++i) continue;
  tc_reply(&n, sizeof n);
}
