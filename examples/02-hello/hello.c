// SPDX-License-Identifier: Apache-2.0
#include <threechains/ifunc.h>

// Runs wherever it is sent, and answers from there.
void hello_main(void *payload, size_t payload_size, void *target_args) {
  (void)target_args;
  char answer[128] = "Hello, ";
  size_t length = 7;
  for (size_t i = 0; i < payload_size && length < 100; ++i) answer[length++] = ((const char *)payload)[i];
  for (const char *p = ", from node "; *p; ++p) answer[length++] = *p;
  answer[length++] = (char)('0' + tc_id() % 10);
  tc_reply(answer, length);
}
