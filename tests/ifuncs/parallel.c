/* SPDX-License-Identifier: Apache-2.0
 * An OpenMP loop: the compiler outlines its body to a function whose address goes to the runtime library. Replies with
 * the sum of 0 to 9999. */
#include <threechains/ifunc.h>

void parallel_main(void *payload, size_t payload_size, void *target_args) {
  (void)payload, (void)payload_size, (void)target_args;
  uint64_t sum = 0;
#pragma omp parallel for num_threads(2) reduction(+ : sum)
  for (uint64_t i = 0; i < 10000; ++i) sum += i;
  tc_reply(&sum, sizeof sum);
}
