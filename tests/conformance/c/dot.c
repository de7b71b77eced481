// SPDX-License-Identifier: Apache-2.0
#include <threechains/ifunc.h>

void dot_main(void *payload, size_t payload_size, void *target_args) {
  (void)target_args;
  const size_t half = payload_size / sizeof(double) / 2;
  const double *const a = payload, *const b = a + half;
  double sum = 0;
  for (size_t i = 0; i < half; ++i) sum += a[i] * b[i];
  tc_reply(&sum, sizeof sum);
}
