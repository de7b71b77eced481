// SPDX-License-Identifier: Apache-2.0
//
// Goes round the first `servers` servers, in messages as long as the Chaser's: what one hop takes.
#include <threechains/ifunc.h>

struct hop {
  uint32_t to_go, servers, padding[2];
};

void hop_main(void *payload, size_t payload_size, void *target_args) {
  (void)target_args;
  struct hop *hop = payload;
  if (payload_size != sizeof *hop || hop->servers == 0) {
    tc_fail(1, "a hop is 16 bytes: how many to go, round how many servers");
    return;
  }
  if (hop->to_go == 0) {
    tc_reply(NULL, 0);
    return;
  }
  --hop->to_go;
  const tc_status_t status = tc_forward((tc_id() + 1) % hop->servers, hop, sizeof *hop);
  if (status != TC_OK) tc_fail((int32_t)status, "the next server cannot be reached");
}
