// SPDX-License-Identifier: Apache-2.0
//
// Writes its payload's byte behind those of earlier calls, so that a test sees the order in which calls ran.
#include <threechains/ifunc.h>

void append_main(void *payload, size_t payload_size, void *target_args) {
  (void)target_args;
  size_t size = 0;
  unsigned char *text = tc_data("text", &size);
  if (!text || payload_size < 1) return tc_fail(1, "no text");
  const size_t used = text[0];
  if (used + 1 < size) text[used + 1] = *(unsigned char *)payload;
  text[0] = (unsigned char)(used + 1);
}
