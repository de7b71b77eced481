// SPDX-License-Identifier: Apache-2.0
// Reads constants, changes a variable, calls functions of the process that runs it: of the ABI, a library, and memset.
#include <stddef.h>

extern unsigned tc_id(void);
extern double cbrt(double);

static const char *const words[] = {"one", "three", "seventeen"};
static char text[300];
int tc_variable_0 = 40;

struct answer {
  unsigned id;
  int calls, cube_root;
  unsigned long cleared;
  char word[16];
};

void ifunc_main(void *payload, size_t payload_size, void *target_args) {
  struct answer *answer = target_args;
  (void)payload;
  for (size_t i = 0; i < sizeof text; ++i) text[i] = 1;
  __builtin_memset(text, 0, payload_size);
  answer->cleared = 0;
  for (size_t i = 0; i < sizeof text; ++i) answer->cleared += text[i] == 0;
  answer->id = tc_id();
  answer->calls = ++tc_variable_0;
  answer->cube_root = (int)cbrt(27.0 + (double)payload_size - 200.0);
  const char *word = words[payload_size % 3];
  for (size_t i = 0; i < sizeof answer->word && (answer->word[i] = word[i]) != 0; ++i) {
  }
}
