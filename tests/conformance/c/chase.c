// SPDX-License-Identifier: Apache-2.0
#include <threechains/ifunc.h>

struct chase {
  uint64_t at, steps;
};

void chase_main(void *payload, size_t payload_size, void *target_args) {
  (void)payload_size, (void)target_args;
  const struct chase *const chase = payload;
  const uint64_t *const table = tc_data("table", NULL);
  uint64_t at = chase->at;
  for (uint64_t i = 0; i < chase->steps; ++i) at = table[at];
  tc_reply(&at, sizeof at);
}
