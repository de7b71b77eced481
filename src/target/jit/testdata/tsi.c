// SPDX-License-Identifier: Apache-2.0
// The target-side increment of the papers: the smallest ifunc there is, for measuring.
#include <stddef.h>

void tsi_main(void *payload, size_t payload_size, void *target_args) {
  (void)payload, (void)payload_size;
  *(unsigned long *)target_args += 1;
}
