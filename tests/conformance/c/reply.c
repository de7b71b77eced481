// SPDX-License-Identifier: Apache-2.0
#include <threechains/ifunc.h>

void reply_main(void *payload, size_t payload_size, void *target_args) {
  (void)target_args;
  char *const text = payload;
  for (size_t i = 0; i < payload_size / 2; ++i) {
    const char first = text[i];
    text[i] = text[payload_size - 1 - i];
    text[payload_size - 1 - i] = first;
  }
  tc_reply(text, payload_size);
}
