// SPDX-License-Identifier: Apache-2.0
//
// Waits until as many of its calls have begun at this node as its payload's first byte says. The data `meeting` counts them.
#include <threechains/ifunc.h>

TC_CONCURRENT;

void meet_main(void *payload, size_t payload_size, void *target_args) {
  (void)target_args;
  uint64_t *const begun = tc_data("meeting", 0);
  if (begun == 0 || payload_size == 0) {
    tc_fail(1, "there is no number, or no data 'meeting'");
    return;
  }
  const uint64_t wanted = *(const unsigned char *)payload;
  __atomic_add_fetch(begun, 1, __ATOMIC_SEQ_CST);
  while (__atomic_load_n(begun, __ATOMIC_SEQ_CST) < wanted) {
  }
}
