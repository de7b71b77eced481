// SPDX-License-Identifier: Apache-2.0
//
// Goes on for as many hops as its payload says, then lets another ifunc answer in its place: the one that its payload
// names. "2 echo\0words" goes two hops further and ends as echo("words") on the node after those.
#include <threechains/ifunc.h>

void choose_main(void *payload, size_t payload_size, void *target_args) {
  (void)target_args;
  char *text = payload;
  char *end = text;
  while (end < text + payload_size && *end != 0) ++end;
  if (end < text + 3 || end == text + payload_size) return tc_fail(1, "wrong payload");
  const uint32_t next = (tc_id() + 1) % tc_count();
  tc_status_t status;
  if (text[0] != '0') {
    --text[0];
    status = tc_forward(next, payload, payload_size);
  } else {
    status = tc_forward_as(next, text + 2, end + 1, payload_size - (size_t)(end + 1 - text));
  }
  if (status != TC_OK) tc_fail((int32_t)status, "cannot go on");
}
