/* SPDX-License-Identifier: Apache-2.0
 * Injects the ifunc `count`, which the node has to know, into the node that the payload's digit names. */
#include <threechains/ifunc.h>

void relay_main(void *payload, size_t payload_size, void *target_args) {
  (void)target_args;
  if (payload_size != 1 || tc_inject((uint32_t)(*(char *)payload - '0'), "count", "", 0) != TC_OK)
    tc_fail(1, "could not inject");
}
