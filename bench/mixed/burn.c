// SPDX-License-Identifier: Apache-2.0
//
// A call that computes: it works for as many rounds as the payload says, and answers with the result.
#include "burn.h"

#include <string.h>
#include <threechains/ifunc.h>

TC_CONCURRENT;

void burn_main(void *payload, size_t payload_size, void *target_args) {
  uint64_t rounds, result;
  (void)target_args;
  if (payload_size != sizeof rounds) {
    tc_fail(1, "a payload is a number of rounds, of 8 bytes");
    return;
  }
  memcpy(&rounds, payload, sizeof rounds);
  result = burn(rounds);
  tc_reply(&result, sizeof result);
}
