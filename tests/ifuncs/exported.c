// SPDX-License-Identifier: Apache-2.0
//
// Calls a function that the target's application may or may not export.
#include <threechains/ifunc.h>

extern uint64_t application_answer(void);

void exported_main(void *payload, size_t payload_size, void *target_args) {
  (void)payload, (void)payload_size, (void)target_args;
  const uint64_t answer = application_answer();
  tc_reply(&answer, sizeof answer);
}
