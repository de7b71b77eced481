// SPDX-License-Identifier: Apache-2.0
#include <threechains/ifunc.h>

void search_main(void *payload, size_t payload_size, void *target_args) {
  (void)target_args;
  size_t size = 0;
  const char *const text = tc_data("text", &size);
  uint64_t found = UINT64_MAX;
  for (size_t i = 0; i + payload_size <= size && found == UINT64_MAX; ++i)
    if (__builtin_memcmp(text + i, payload, payload_size) == 0) found = i;
  tc_reply(&found, sizeof found);
}
