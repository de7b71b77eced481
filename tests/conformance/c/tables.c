// SPDX-License-Identifier: Apache-2.0
// Looks for functions in constant tables, whose addresses go around.
#include <threechains/ifunc.h>

typedef uint64_t step(uint64_t);
struct operations {
  step *first, *second;
};

static uint64_t calls;

__attribute__((noinline)) static uint64_t add(uint64_t n) { return n + calls; }
__attribute__((noinline)) static uint64_t twice(uint64_t n) { return n * 2 + calls; }

static step *const forwards[] = {add, twice}, *const backwards[] = {twice, add};
static const struct operations forward = {add, twice}, backward = {twice, add};
static const struct operations *const all[] = {&forward, &backward};

__attribute__((noinline)) static uint64_t find(step *const *table, step *what) {
  uint64_t i = 0;
  while (i != 2 && table[i] != what) ++i;
  return i;
}

void tables_main(void *payload, size_t payload_size, void *target_args) {
  (void)payload_size, (void)target_args;
  const uint64_t n = *(const uint64_t *)payload;
  const uint64_t answer[] = {++calls, find(forwards, n % 2 ? add : twice), find(backwards, n % 3 ? add : twice),
                             all[n % 2]->first == add, all[n % 2]->second(n)};
  tc_reply(answer, sizeof answer);
}
