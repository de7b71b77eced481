// SPDX-License-Identifier: Apache-2.0
#include <threechains/ifunc.h>

void forward_main(void *payload, size_t payload_size, void *target_args) {
  (void)target_args;
  if (tc_id() + 1 < tc_count()) {
    if (tc_forward(tc_id() + 1, payload, payload_size) != TC_OK) tc_fail(1, "no way there");
    return;
  }
  ((uint8_t *)payload)[0] = (uint8_t)('0' + tc_id());
  tc_reply(payload, payload_size);
}
