// SPDX-License-Identifier: Apache-2.0
//
// Logs as many warnings as its payload says, a uint32_t. With a second one, it tries as often to go to that node.
#include <threechains/ifunc.h>

void chatter_main(void *payload, size_t payload_size, void *target_args) {
  (void)target_args;
  const uint32_t *const numbers = payload;
  if (payload_size < sizeof *numbers) return tc_fail(1, "how many lines?");
  if (payload_size == 2 * sizeof *numbers) {
    for (uint32_t i = 0; i < numbers[0]; ++i) (void)tc_forward(numbers[1], payload, payload_size);
  } else {
    for (uint32_t i = 0; i < numbers[0]; ++i) tc_log(2, "all is well");
  }
  tc_reply(payload, payload_size);
}
