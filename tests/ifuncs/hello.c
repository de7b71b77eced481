/* SPDX-License-Identifier: Apache-2.0 */
#include <threechains/ifunc.h>

void hello_main(void *payload, size_t payload_size, void *target_args) {
  (void)target_args;
  char text[64] = "hello, ";
  size_t size = 7;
  for (size_t i = 0; i < payload_size && size < sizeof text; ++i) text[size++] = ((char *)payload)[i];
  tc_reply(text, size);
}
