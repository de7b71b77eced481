// SPDX-License-Identifier: Apache-2.0
// Every kind of data: initialised, zeroed, constant, a pointer to a constant, a table of functions.
#include <stddef.h>

static int counter = 40;
static char zeroed[100000];
static const char *greeting = "hello";
static int twice(int x) { return 2 * x; }
static int thrice(int x) { return 3 * x; }
static int (*const table[])(int) = {twice, thrice};

int data_count(int step) { return counter += step; }
size_t data_nonzero(void) {
  size_t found = 0;
  for (size_t i = 0; i < sizeof zeroed; ++i) found += zeroed[i] != 0;
  return found;
}
void data_fill(void) {
  for (size_t i = 0; i < sizeof zeroed; ++i) zeroed[i] = 1;
}
const char *data_greeting(void) { return greeting; }
int data_apply(size_t which, int x) { return table[which](x); }
