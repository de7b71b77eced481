/* SPDX-License-Identifier: Apache-2.0
 * Replies with this node's number and the number of nodes, as "2 of 4". */
#include <threechains/ifunc.h>

void whoami_main(void *payload, size_t payload_size, void *target_args) {
  (void)payload;
  (void)payload_size;
  (void)target_args;
  char text[6] = {(char)('0' + tc_id()), ' ', 'o', 'f', ' ', (char)('0' + tc_count())};
  tc_reply(text, sizeof text);
}
