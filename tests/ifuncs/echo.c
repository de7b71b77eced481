// SPDX-License-Identifier: Apache-2.0
#include <threechains/ifunc.h>

void echo_main(void *payload, size_t payload_size, void *target_args) {
  (void)target_args;
  tc_reply(payload, payload_size);
}
