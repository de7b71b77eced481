// SPDX-License-Identifier: Apache-2.0
//
// A token that goes round the cluster: each node counts it down and forwards it to the next; the last one answers.
#include <threechains/ifunc.h>

void token_main(void *payload, size_t payload_size, void *target_args) {
  (void)target_args;
  uint32_t *hops_to_go = payload;
  if (payload_size != sizeof *hops_to_go) {
    tc_fail(1, "a token is 4 bytes");
    return;
  }
  if (*hops_to_go == 0) {
    tc_reply(payload, payload_size);
    return;
  }
  --*hops_to_go;
  const tc_status_t status = tc_forward((tc_id() + 1) % tc_count(), payload, payload_size);
  if (status != TC_OK) tc_fail((int32_t)status, "the next node cannot be reached");
}
