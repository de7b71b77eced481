// SPDX-License-Identifier: Apache-2.0
//
// Takes a large payload and answers with its first and its last word, or answers a small request with many bytes. It
// leaves the rest of the payload alone, as the handlers that it is measured beside do.
#include "carry.h"

#include <string.h>
#include <threechains/ifunc.h>

static void reply_with(const struct carry_target *target, const void *request) {
  uint64_t size;
  memcpy(&size, request, sizeof size);
  if (size <= target->size)
    tc_reply(target->data, size);
  else
    tc_fail(1, "the data has fewer bytes than were asked for");
}

void carry_main(void *payload, size_t payload_size, void *target_args) {
  uint64_t ends[2];
  if (payload_size == CARRY_REQUEST_BYTES) {
    reply_with(target_args, payload);
    return;
  }
  if (payload_size < sizeof ends) {
    tc_fail(1, "a payload is a request of 8 bytes, or two words or more");
    return;
  }
  memcpy(&ends[0], payload, sizeof ends[0]);
  memcpy(&ends[1], (const char *)payload + payload_size - sizeof ends[1], sizeof ends[1]);
  tc_reply(ends, sizeof ends);
}
