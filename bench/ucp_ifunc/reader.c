// SPDX-License-Identifier: Apache-2.0
// Counts like examples/ucp_ifunc/count.c, and reads its payload first: every word, in sums that the compiler cannot skip.
#include "reader.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

size_t reader_payload_bound(void *source_args, size_t source_args_size) {
  (void)source_args_size;
  return *(const size_t *)source_args;
}

int reader_payload_init(void *source_args, size_t source_args_size, void *payload, size_t *payload_size) {
  (void)source_args, (void)source_args_size;
  memset(payload, 1, *payload_size);
  return 0;
}

void reader_main(void *payload, size_t payload_size, void *target_args) {
  read_and_count(payload, payload_size, target_args);
}
