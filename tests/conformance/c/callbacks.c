// SPDX-License-Identifier: Apache-2.0
// Keeps addresses of functions and calls them later. They use the variables of all calls, whoever calls them.
#include <stdlib.h>
#include <threechains/ifunc.h>

typedef uint64_t step(uint64_t);

struct operations {
  step *first, *second;
};

static uint64_t calls, steps_done;

__attribute__((noinline)) static uint64_t add(uint64_t n) { return ++steps_done, n + 3; }
__attribute__((noinline)) static uint64_t twice(uint64_t n) { return ++steps_done, n * 2; }

static const struct operations forward = {add, twice}, backward = {twice, add};
static const struct operations *used = &forward;
static step *kept, *table[4];

static int descending(const void *a, const void *b) {
  const uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
  return ++steps_done, (left < right) - (left > right);
}

void callbacks_main(void *payload, size_t payload_size, void *target_args) {
  (void)payload_size, (void)target_args;
  const uint64_t n = *(const uint64_t *)payload;
  uint64_t answer[7] = {++calls};
  if (kept == NULL) kept = n % 2 ? add : twice;
  answer[1] = kept(n);
  table[n % 4] = n % 3 ? twice : add;
  for (int i = 0; i < 4; ++i) answer[2] = answer[2] * 100 + (table[i] ? table[i](n) : 0);
  answer[3] = used->second(used->first(n));
  used = n % 2 ? &backward : &forward;
  uint64_t numbers[] = {n, 7, 2, 9};
  qsort(numbers, 4, sizeof numbers[0], descending);
  answer[4] = numbers[0] * 10 + numbers[3];
  answer[5] = bsearch(&n, numbers, 4, sizeof numbers[0], descending) != NULL;
  answer[6] = steps_done > 0;
  tc_reply(answer, sizeof answer);
}
