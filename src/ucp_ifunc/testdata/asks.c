// SPDX-License-Identifier: Apache-2.0
// Asks the library twice in a call, and lets the target do something in between.
#include <stddef.h>

int version_number(void);
extern unsigned long version_calls;

struct answer {
  int first, second;
  unsigned long calls;
  void (*between)(void *);
  void *with;
};

void asks_main(void *payload, size_t payload_size, void *target_args) {
  (void)payload;
  (void)payload_size;
  struct answer *answer = target_args;
  answer->first = version_number();
  if (answer->between) answer->between(answer->with);
  answer->second = version_number();
  answer->calls = version_calls;
}
