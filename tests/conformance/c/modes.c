// SPDX-License-Identifier: Apache-2.0
// Jumps to labels by a constant table of constant tables, one for each mode.
#include <threechains/ifunc.h>

static uint64_t calls;

static uint64_t by_table_of_tables(uint64_t n) {
  static const void *const forward[] = {&&add, &&twice, &&end}, *const backward[] = {&&twice, &&add, &&end};
  static const void *const *const modes[] = {forward, backward};
  const void *const *const mode = modes[n % 2];
  uint64_t value = n, step = 0;
  goto *mode[step++];
add:
  value += 10 + calls;
  goto *mode[step++];
twice:
  value *= 2;
  goto *mode[step++];
end:
  return value;
}

void modes_main(void *payload, size_t payload_size, void *target_args) {
  (void)payload_size, (void)target_args;
  const uint64_t answer[] = {++calls, by_table_of_tables(*(const uint64_t *)payload)};
  tc_reply(answer, sizeof answer);
}
