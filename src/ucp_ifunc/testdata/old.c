// SPDX-License-Identifier: Apache-2.0
// The 2021 form (Listing 1.2).
#include <stddef.h>
#include <string.h>

size_t old_payload_get_max_size(void *source_args, size_t source_args_size) {
  (void)source_args;
  return 2 * source_args_size;
}

int old_payload_init(void *payload, size_t payload_size, void *source_args, size_t source_args_size) {
  memset(payload, 0, payload_size);
  memcpy(payload, source_args, source_args_size);
  return 0;
}

void old_main(void *payload, size_t payload_size, void *target_args) {
  (void)payload;
  *(size_t *)target_args += payload_size;
}
