// SPDX-License-Identifier: Apache-2.0
// Uses what is nowhere.
#include <stddef.h>

void nowhere_to_be_found(void);

void needs_main(void *payload, size_t payload_size, void *target_args) {
  (void)payload, (void)payload_size, (void)target_args;
  nowhere_to_be_found();
}
