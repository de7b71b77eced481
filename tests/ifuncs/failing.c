/* SPDX-License-Identifier: Apache-2.0 */
#include <threechains/ifunc.h>

void failing_main(void *payload, size_t payload_size, void *target_args) {
  (void)payload;
  (void)payload_size;
  (void)target_args;
  tc_fail(42, "the moon is in the wrong phase");
}
