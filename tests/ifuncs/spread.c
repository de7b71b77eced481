// SPDX-License-Identifier: Apache-2.0
//
// Injects the ifunc `append` into every other node, by name.
#include <threechains/ifunc.h>

void spread_main(void *payload, size_t payload_size, void *target_args) {
  (void)target_args;
  for (uint32_t node = 0; node < tc_count(); ++node) {
    if (node == tc_id()) continue;
    const tc_status_t status = tc_inject(node, "append", payload, payload_size);
    if (status != TC_OK) return tc_fail((int32_t)status, "cannot inject");
  }
}
