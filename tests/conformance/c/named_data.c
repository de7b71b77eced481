// SPDX-License-Identifier: Apache-2.0
#include <threechains/ifunc.h>

void named_data_main(void *payload, size_t payload_size, void *target_args) {
  (void)payload, (void)payload_size, (void)target_args;
  size_t size = 0;
  tc_data("text", &size);
  const uint64_t answer[2] = {size, tc_data("nothing", NULL) != NULL};
  tc_reply(answer, sizeof answer);
}
