/* SPDX-License-Identifier: Apache-2.0 */
/* An ifunc in the 2022 form: the payload's bytes are summed up by a helper that travels along, as do its tables. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

static const unsigned char weights[2] = {1, 1};

size_t bytes_payload_bound(void *source_args, size_t source_args_size) {
  (void)source_args;
  return source_args_size + 10;
}

int bytes_payload_init(void *source_args, size_t source_args_size, void *payload, size_t *payload_size) {
  memcpy(payload, source_args, source_args_size);
  *payload_size = source_args_size;
  return 0;
}

__attribute__((noinline)) static uint64_t weigh(const unsigned char *bytes, size_t size) {
  uint64_t sum = 0;
  for (size_t i = 0; i < size; ++i) sum += (uint64_t)bytes[i] * weights[i % 2];
  return sum;
}

void bytes_main(void *payload, size_t payload_size, void *target_args) {
  *(uint64_t *)target_args += weigh(payload, payload_size);
}
