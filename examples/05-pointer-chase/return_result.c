// SPDX-License-Identifier: Apache-2.0
//
// ReturnResult (main paper, IV.C): leaves the end of a chase in the destination's memory.
#include <threechains/ifunc.h>

#include "chase.h"

void return_result_main(void *payload, size_t payload_size, void *target_args) {
  (void)target_args;
  size_t bytes = 0;
  struct chase_result *result = tc_data(CHASE_RESULT, &bytes);
  if (payload_size != sizeof(uint64_t) || result == NULL || bytes < sizeof *result) {
    tc_fail(1, "a result is 8 bytes, for a node that exposes " CHASE_RESULT);
    return;
  }
  result->address = *(const uint64_t *)payload;
  ++result->count;
}
