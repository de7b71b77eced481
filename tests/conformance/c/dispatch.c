// SPDX-License-Identifier: Apache-2.0
// Jumps to labels whose addresses go with the call: from constant tables, local ones, and by way of a variable.
#include <threechains/ifunc.h>

static uint64_t calls;

static uint64_t by_constant_table(uint64_t n) {
  static const void *const steps[] = {&&end, &&add, &&twice};
  uint64_t value = n;
  goto *steps[1 + n % 2];
add:
  value += 10;
  goto *steps[0];
twice:
  value *= 2;
  goto *steps[value > 100 ? 0 : 1];
end:
  return value;
}

static uint64_t by_local_table(uint64_t n) {
  const void *steps[3] = {&&one, &&two, &&three};
  if (n % 2 == 0) steps[0] = steps[2];
  goto *steps[n % 3];
one:
  return 1;
two:
  return 2;
three:
  return 3;
}

static uint64_t by_variable(uint64_t n) {
  const void *next = n > 2 ? &&large : &&small;
  uint64_t value = 0;
  goto *next;
small:
  value += 5;
  next = &&large;
  goto *next;
large:
  return value + 7;
}

static uint64_t by_distance(uint64_t n) {
  static const int distances[] = {(char *) && first - (char *) && first, (char *) && second - (char *) && first};
  goto *(void *)((char *) && first + distances[n % 2]);
first:
  return 11;
second:
  return 22;
}

void dispatch_main(void *payload, size_t payload_size, void *target_args) {
  (void)payload_size, (void)target_args;
  const uint64_t n = *(const uint64_t *)payload;
  const uint64_t answer[] = {++calls, by_constant_table(n), by_local_table(n), by_variable(n), by_distance(n)};
  tc_reply(answer, sizeof answer);
}
