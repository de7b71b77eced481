// SPDX-License-Identifier: Apache-2.0
//
// Keeps the payload of its first call in a variable, and answers every call with what is kept: what one caller leaves behind
// is there in the answers of all that share the memory.
#include <string.h>
#include <threechains/ifunc.h>

static struct {
  size_t size;
  char bytes[64];
} kept;

void keep_main(void *payload, size_t payload_size, void *target_args) {
  (void)target_args;
  if (kept.size == 0) {
    kept.size = payload_size < sizeof kept.bytes ? payload_size : sizeof kept.bytes;
    memcpy(kept.bytes, payload, kept.size);
  }
  tc_reply(kept.bytes, kept.size);
}
