/* SPDX-License-Identifier: Apache-2.0
 * The payload is a list of node numbers (digits): goes to the next one, and replies from the last with its number. */
#include <threechains/ifunc.h>

void hop_main(void *payload, size_t payload_size, void *target_args) {
  (void)target_args;
  const char *route = payload;
  if (payload_size == 0) {
    const char digit = (char)('0' + tc_id());
    tc_reply(&digit, 1);
    return;
  }
  if (tc_forward((uint32_t)(route[0] - '0'), route + 1, payload_size - 1) != TC_OK) tc_fail(route[0], "no way there");
}
