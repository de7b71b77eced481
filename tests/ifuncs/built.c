// SPDX-License-Identifier: Apache-2.0
//
// Builds its payload at the source, in the form of the 2021 paper: twice the source args.
#include <string.h>
#include <threechains/ifunc.h>

size_t built_payload_get_max_size(void *source_args, size_t source_args_size) {
  (void)source_args;
  return 2 * source_args_size;
}

int built_payload_init(void *payload, size_t payload_size, void *source_args, size_t source_args_size) {
  (void)payload_size;
  memcpy(payload, source_args, source_args_size);
  memcpy((char *)payload + source_args_size, source_args, source_args_size);
  return 0;
}

void built_main(void *payload, size_t payload_size, void *target_args) {
  (void)target_args;
  tc_reply(payload, payload_size);
}
