// SPDX-License-Identifier: Apache-2.0
//
// Answers with how many calls it has had, also where it has nothing of its node: in a cell.
#include <threechains/ifunc.h>

void numbered_main(void *payload, size_t payload_size, void *target_args) {
  static uint64_t count;
  (void)payload, (void)payload_size, (void)target_args;
  ++count;
  tc_reply(&count, sizeof count);
}
