// SPDX-License-Identifier: Apache-2.0
//
// Asks for payloads at 256 bytes and answers with where its payload really lies.
#include <threechains/ifunc.h>

TC_PAYLOAD_ALIGN(256);

void aligned_main(void *payload, size_t payload_size, void *target_args) {
  (void)payload_size, (void)target_args;
  const uint64_t offset = (uintptr_t)payload % 256;
  tc_reply(&offset, sizeof offset);
}
