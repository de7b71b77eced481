// SPDX-License-Identifier: Apache-2.0
// Keeps an address of code from one call to the next, or does not; CASE says which function this is.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef uint64_t step(uint64_t);

uint64_t calls;

__attribute__((noinline)) static uint64_t add(uint64_t n) { return n + ++calls; }
__attribute__((noinline)) static uint64_t twice(uint64_t n) { return n * 2 + ++calls; }

struct operations {
  step *first, *second;
};

#if CASE == 1  // a table of labels that is filled by the first call
const void *table[2];
uint64_t run(uint64_t n) {
  if (table[0] == NULL) table[0] = &&one, table[1] = &&two;
  goto *table[n % 2];
one:
  return 1;
two:
  return 2;
}

#elif CASE == 2  // a label of a constant table
const void *next;
uint64_t run(uint64_t n) {
  static const void *const steps[] = {&&one, &&two};
  if (next == NULL) next = steps[n % 2];
  goto *next;
one:
  return 1;
two:
  return 2;
}

#elif CASE == 3  // the distance of two labels
long distance;
uint64_t run(uint64_t n) {
  if (n == 1) distance = (char *) && two - (char *) && one;
  goto *(void *)((char *) && one + distance);
one:
  return 1;
two:
  return 2;
}

#elif CASE == 4  // a function, which is compared
step *kept;
uint64_t run(uint64_t n) {
  if (kept == NULL) kept = n % 2 ? add : twice;
  return kept == add ? 1 : kept(n);
}

#elif CASE == 5  // two functions, which are compared with each other
step *kept, *other;
uint64_t run(uint64_t n) {
  if (n % 3) kept = n % 2 ? add : twice;
  if (n % 5) other = n % 2 ? twice : add;
  return kept == other;
}

#elif CASE == 6  // a table of functions, of which one is compared
static const struct operations forward = {add, twice}, backward = {twice, add};
const struct operations *used;
uint64_t run(uint64_t n) {
  if (used == NULL) used = n % 2 ? &forward : &backward;
  return used->first == add ? 1 : used->second(n);
}

#elif CASE == 7  // a function in a structure that another function fills
struct operations kept;
__attribute__((noinline)) static void fill(struct operations *operations, step *first) { operations->first = first; }
uint64_t run(uint64_t n) {
  if (kept.first == NULL) fill(&kept, n % 2 ? add : twice);
  return kept.first == twice;
}

#elif CASE == 8  // constant tables that all compilations share, as they have names: a function is looked for
step *const forwards[] = {add, twice}, *const backwards[] = {twice, add};
__attribute__((noinline)) static uint64_t find(step *const *table, step *what) {
  uint64_t i = 0;
  while (i != 2 && table[i] != what) ++i;
  return i;
}
uint64_t run(uint64_t n) { return find(n % 3 ? forwards : backwards, n % 2 ? add : twice); }

#elif CASE == 9  // likewise, by way of a table of tables
const struct operations forward = {add, twice}, backward = {twice, add};
const struct operations *const all[] = {&forward, &backward};
uint64_t run(uint64_t n) { return all[n % 2]->first == add; }

#elif CASE == 10  // a function in a structure, which is compared with a constant as memory
static const struct operations forward = {add, twice};
struct operations kept;
uint64_t run(uint64_t n) {
  if (kept.first == NULL) kept.first = n % 2 ? add : twice, kept.second = twice;
  return memcmp(&kept, &forward, sizeof kept) == 0;
}

#elif CASE == 15  // likewise, with another variable
struct operations kept, other;
uint64_t run(uint64_t n) {
  if (n % 3) kept.first = add, kept.second = n % 5 ? twice : add;
  if (n % 7) other.first = add, other.second = twice;
  return memcmp(&kept, &other, sizeof kept) == 0;
}

#elif CASE == 16  // functions, which are compared as numbers
volatile uintptr_t kept, other;
uint64_t run(uint64_t n) {
  if (n % 3) kept = (uintptr_t)(n % 2 ? add : twice);
  if (n % 5) other = (uintptr_t)(n % 2 ? twice : add);
  return kept == other;
}

#elif CASE == 19  // functions, which are put in order as numbers
volatile uintptr_t kept, other;
uint64_t run(uint64_t n) {
  if (n % 3) kept = (uintptr_t)(n % 2 ? add : twice);
  if (n % 5) other = (uintptr_t)(n % 2 ? twice : add);
  return kept < other;
}

#elif CASE == 21  // functions, of which a union makes numbers
union {
  step *step;
  uint64_t number;
} kept, other;
uint64_t run(uint64_t n) {
  if (n % 3) kept.step = add;
  if (n % 5) other.step = n % 2 ? twice : add;
  ++*(volatile uint64_t *)&calls;
  return kept.number == other.number;
}

#elif CASE == 20  // a function, and numbers are compared
step *kept;
uint64_t numbers[4];
uint64_t run(uint64_t n) {
  kept = n % 2 ? add : twice;
  return kept(numbers[n % 4] < numbers[n / 4 % 4]) + (numbers[n % 4] == numbers[n / 4 % 4]);
}

#elif CASE == 17  // two functions, or none
step *volatile kept, *volatile other;
uint64_t run(uint64_t n) {
  if (n % 3) kept = n % 2 ? add : twice;
  if (n % 5) other = n % 2 ? twice : add;
  step *one = NULL;
  if (n > 100) one = kept, ++calls;
  return one == other;
}

#elif CASE == 11  // labels of a constant table, and of a local one
uint64_t run(uint64_t n) {
  static const void *const steps[] = {&&one, &&two};
  const void *local[] = {&&two, &&one};
  if (n % 3 == 0) local[n % 2] = steps[n % 2];
  ++calls;
  goto *(n % 5 ? steps[n % 2] : local[n % 2]);
one:
  return 1;
two:
  return 2;
}

#elif CASE == 12  // a function, which is only called
step *kept;
uint64_t run(uint64_t n) {
  if (kept == NULL) kept = n % 2 ? add : twice;
  return kept(n);
}

#elif CASE == 13  // functions are given to a library; numbers are compared
static int ascending(const void *a, const void *b) { return *(const int *)a - *(const int *)b + (int)(++calls * 0); }
uint64_t run(uint64_t n) {
  int numbers[] = {3, 1, (int)n};
  qsort(numbers, 3, sizeof numbers[0], ascending);
  const int *at = numbers;
  while (at != numbers + 3 && *at != 3) ++at;
  return (uint64_t)(at - numbers);
}

#elif CASE == 14  // a function, and addresses of data are compared
step *kept;
uint64_t run(uint64_t n) {
  static uint64_t numbers[4];
  kept = n % 2 ? add : twice;
  uint64_t sum = 0;
  for (const uint64_t *at = numbers + n % 4; at != numbers + 4; ++at) sum += *at;
  return kept(sum);
}

#elif CASE == 18  // constant tables that have names, of functions which are called, and texts are compared
const struct operations forward = {add, twice}, backward = {twice, add};
const struct operations *const all[] = {&forward, &backward};
const struct operations *used;
char text[8];
uint64_t run(uint64_t n) {
  used = all[n % 2];
  text[n % 8] = (char)n;
  return memcmp(text, "forward", sizeof text) == 0 ? used->first(n) : used->second(n);
}
#endif
