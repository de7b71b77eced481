// SPDX-License-Identifier: Apache-2.0
// Keeps addresses of labels in every kind of storage, from one call to the next.
#include <threechains/ifunc.h>

static uint64_t calls;

__attribute__((noinline)) static uint64_t filled_table(uint64_t n) {
  static const void *steps[3];
  static int filled;
  if (!filled) {
    steps[0] = &&one;
    steps[1] = &&two;
    steps[2] = &&three;
    filled = 1;
  }
  goto *steps[n % 3];
one:
  return 1;
two:
  return 2;
three:
  return 3;
}

// Each call goes on where the one before stopped.
__attribute__((noinline)) static uint64_t resumed(void) {
  static const void *next;
  if (next == NULL) next = &&start;
  goto *next;
start:
  next = &&middle;
  return 100;
middle:
  next = &&end;
  return 200;
end:
  next = &&start;
  return 300;
}

__attribute__((noinline)) static uint64_t from_constant_table(uint64_t n) {
  static const void *const steps[] = {&&left, &&right};
  static const void *kept;
  if (n % 2 == 1 || kept == NULL) kept = steps[n / 2 % 2];
  const int is_left = kept == steps[0];
  goto *kept;
left:
  return 10 + is_left;
right:
  return 20 + is_left;
}

__attribute__((noinline)) static uint64_t by_kept_distance(uint64_t n) {
  static long distance;
  if (n == 1) distance = (char *) && far - (char *) && near;
  goto *(void *)((char *) && near + distance);
near:
  return 5;
far:
  return 6;
}

struct machine {
  const void *state;
  uint64_t steps;
};

__attribute__((noinline)) static uint64_t in_a_structure(uint64_t n) {
  static struct machine machines[2];
  struct machine *const machine = &machines[n % 2];
  if (machine->state == NULL) machine->state = &&idle;
  ++machine->steps;
  goto * machine->state;
idle:
  machine->state = &&busy;
  return machine->steps * 10;
busy:
  machine->state = &&idle;
  return machine->steps * 10 + 1;
}

void labels_main(void *payload, size_t payload_size, void *target_args) {
  (void)payload_size, (void)target_args;
  const uint64_t n = *(const uint64_t *)payload;
  const uint64_t answer[] = {++calls,          filled_table(n), resumed(), from_constant_table(n), by_kept_distance(n),
                             in_a_structure(n)};
  tc_reply(answer, sizeof answer);
}
