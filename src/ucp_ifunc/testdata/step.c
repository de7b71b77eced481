// SPDX-License-Identifier: Apache-2.0
// One name, several codes: adds STEP to the target args, and counts its calls in a variable that travels along.
#include <stddef.h>

static unsigned long calls;

size_t step_payload_bound(void *source_args, size_t size) {
  (void)source_args;
  return size + 100;
}

int step_payload_init(void *source_args, size_t size, void *payload, size_t *payload_size) {
  for (size_t i = 0; i < size; ++i) ((char *)payload)[i] = ((const char *)source_args)[i];
  *payload_size = size;  // it shrinks
  return size == 13;     // which is bad luck
}

struct result {
  unsigned long sum, calls, payload_size, payload_address;
  char first;
};

void step_main(void *payload, size_t payload_size, void *target_args) {
  struct result *result = target_args;
  result->sum += STEP;
  result->calls = ++calls;
  result->payload_size = payload_size;
  result->payload_address = (unsigned long)payload;
  if (payload_size != 0) result->first = *(const char *)payload;
}
