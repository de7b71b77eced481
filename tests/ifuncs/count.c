/* SPDX-License-Identifier: Apache-2.0
 * Adds one to the data `counter`, if there is any, else to the target args; replies with the new value. */
#include <threechains/ifunc.h>

void count_main(void *payload, size_t payload_size, void *target_args) {
  (void)payload;
  (void)payload_size;
  size_t size = 0;
  uint64_t *counter = tc_data("counter", &size);
  if (counter == NULL) counter = target_args;
  if (counter == NULL) {
    tc_fail(1, "there is nothing to count in");
    return;
  }
  ++*counter;
  tc_reply(counter, sizeof *counter);
}
