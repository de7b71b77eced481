// SPDX-License-Identifier: Apache-2.0
//
// The dot product of the two halves of the data "numbers". The sum may be made in any order, so that it can be made in
// vectors: in C by a pragma, in Julia by @simd, in Rust by algebraic::.
#include <threechains/ifunc.h>

void dot_main(void *payload, size_t payload_size, void *target_args) {
#pragma clang fp reassociate(on) contract(fast)
  (void)payload, (void)payload_size, (void)target_args;
  size_t bytes = 0;
  const double *const numbers = tc_data("numbers", &bytes);
  const size_t half = bytes / sizeof *numbers / 2;
  double sum = 0;
  for (size_t i = 0; i < half; ++i) sum += numbers[i] * numbers[half + i];
  tc_reply(&sum, sizeof sum);
}
