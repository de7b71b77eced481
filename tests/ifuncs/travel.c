// SPDX-License-Identifier: Apache-2.0
//
// Goes from node to node as often as its payload says, then answers with where it was.
#include <string.h>
#include <threechains/ifunc.h>

struct travel {
  uint32_t hops_to_go;
  uint32_t visited;
  uint32_t nodes[64];
};

void travel_main(void *payload, size_t payload_size, void *target_args) {
  (void)target_args;
  struct travel *t = payload;
  if (payload_size != sizeof *t) return tc_fail(1, "wrong payload");
  if (t->visited < 64) t->nodes[t->visited++] = tc_id();
  if (t->hops_to_go == 0) {
    tc_reply(t, sizeof *t);
    return;
  }
  --t->hops_to_go;
  const tc_status_t status = tc_forward((tc_id() + 1) % tc_count(), t, sizeof *t);
  if (status != TC_OK) tc_fail((int32_t)status, "cannot go on");
}
