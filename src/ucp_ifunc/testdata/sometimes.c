// SPDX-License-Identifier: Apache-2.0
// Counts in the caller's memory, or fails in a function of its own when the payload begins with an x.
#include <stddef.h>

__attribute__((noreturn)) void abort(void);

__attribute__((noinline)) static unsigned long one(const char *payload) {
  if (*payload == 'x') abort();
  return 1;
}

void sometimes_main(void *payload, size_t payload_size, void *target_args) {
  (void)payload_size;
  const unsigned long more = one(payload);
  *(unsigned long *)target_args += more;
}
