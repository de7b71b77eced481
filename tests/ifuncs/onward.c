// SPDX-License-Identifier: Apache-2.0
//
// Calls a function of the application, and goes on to the node whose number its payload is, unless it is there.
#include <string.h>
#include <threechains/ifunc.h>

extern uint64_t application_answer(void);

void onward_main(void *payload, size_t payload_size, void *target_args) {
  (void)target_args;
  uint32_t node = 0;
  if (payload_size != sizeof node) return tc_fail(1, "wrong payload");
  memcpy(&node, payload, sizeof node);
  application_answer();
  if (node == tc_id()) return;
  const tc_status_t status = tc_forward(node, payload, payload_size);
  if (status != TC_OK) tc_fail((int32_t)status, "cannot go on");
}
