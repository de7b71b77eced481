// SPDX-License-Identifier: Apache-2.0
#include <threechains/ifunc.h>

double hypot(double, double);

void library_main(void *payload, size_t payload_size, void *target_args) {
  (void)payload_size, (void)target_args;
  const double *const sides = payload;
  const double longest = hypot(sides[0], sides[1]);
  tc_reply(&longest, sizeof longest);
}
