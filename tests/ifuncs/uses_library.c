// SPDX-License-Identifier: Apache-2.0
//
// Answers "VERSION RESULT CALLS" by way of a library that was sent before. Its payload is the value to compute with.
#include <threechains/ifunc.h>

extern const char greeting_version[];
extern uint32_t greeting_calls;
uint32_t greeting_compute(uint32_t value);

struct answer {
  char version[8];
  uint32_t result, calls;
};

void uses_library_main(void *payload, size_t payload_size, void *target_args) {
  (void)target_args;
  if (payload_size != sizeof(uint32_t)) return tc_fail(1, "wrong payload");
  struct answer answer = {{0}, greeting_compute(*(uint32_t *)payload), 0};
  answer.calls = greeting_calls;
  for (int i = 0; i < 7 && greeting_version[i] != 0; ++i) answer.version[i] = greeting_version[i];
  tc_reply(&answer, sizeof answer);
}
