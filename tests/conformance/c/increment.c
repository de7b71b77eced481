// SPDX-License-Identifier: Apache-2.0
#include <threechains/ifunc.h>

void increment_main(void *payload, size_t payload_size, void *target_args) {
  (void)target_args;
  uint64_t *const counter = tc_data("counter", NULL);
  if (payload_size != 8 || counter == NULL) {
    tc_fail(1, "no counter, or no number");
    return;
  }
  *counter += *(const uint64_t *)payload;
  tc_reply(counter, 8);
}
