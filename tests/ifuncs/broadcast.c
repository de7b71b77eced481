// SPDX-License-Identifier: Apache-2.0
//
// Comes once to each of so many nodes, from its first one on: gives half of them to the node where that half begins, as
// long as there are others. So the tree is binomial, and each part gets what the limit of fan-out gives to it: half.
#include "broadcast.h"

#include <threechains/ifunc.h>

void broadcast_main(void *payload, size_t payload_size, void *target_args) {
  (void)target_args;
  const struct broadcast *broadcast = payload;
  if (payload_size != sizeof *broadcast) return tc_fail(1, "a broadcast is 4 bytes: for how many nodes");
  size_t size = 0;
  uint32_t *visits = tc_data(BROADCAST_VISITS, &size);
  if (visits == 0 || size < sizeof *visits) return tc_fail(2, "this node does not count visits");
  ++*visits;
  for (uint32_t count = broadcast->count; count > 1;) {
    const struct broadcast half = {count / 2};
    count -= half.count;
    const tc_status_t status = tc_inject(tc_id() + count, "broadcast", &half, sizeof half);
    if (status != TC_OK) return tc_fail((int32_t)status, "a node cannot be reached");
  }
}
