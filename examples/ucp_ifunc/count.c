// SPDX-License-Identifier: Apache-2.0
// The ifunc of the 2021 paper's evaluation: it counts. The payload is ballast, of the size that the source args say.
#include <stddef.h>
#include <stdint.h>
#include <string.h>

size_t count_payload_bound(void *source_args, size_t source_args_size) {
  (void)source_args_size;
  return *(const size_t *)source_args;
}

int count_payload_init(void *source_args, size_t source_args_size, void *payload, size_t *payload_size) {
  (void)source_args, (void)source_args_size;
  memset(payload, 1, *payload_size);
  return 0;
}

void count_main(void *payload, size_t payload_size, void *target_args) {
  (void)payload, (void)payload_size;
  ++*(volatile uint64_t *)target_args;
}
