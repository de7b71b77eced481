// SPDX-License-Identifier: Apache-2.0
//
// Target-side increment, the papers' smallest ifunc: adds one to the counter that the target hands to its ifuncs.
#include <stddef.h>
#include <stdint.h>

void tsi_main(void *payload, size_t payload_size, void *target_args) {
  (void)payload, (void)payload_size;
  ++*(uint64_t *)target_args;
}
