// SPDX-License-Identifier: Apache-2.0
//
// Gives its payload to a function of the target's application and answers with what that returns.
#include <threechains/ifunc.h>

extern uint64_t application_visit(const void *payload, size_t size);

void visit_main(void *payload, size_t payload_size, void *target_args) {
  (void)target_args;
  const uint64_t answer = application_visit(payload, payload_size);
  tc_reply(&answer, sizeof answer);
}
