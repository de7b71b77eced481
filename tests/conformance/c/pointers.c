// SPDX-License-Identifier: Apache-2.0
// Keeps addresses of functions and compares them later.
#include <threechains/ifunc.h>

typedef uint64_t step(uint64_t);
struct operations {
  step *step;
};

static uint64_t calls;

__attribute__((noinline)) static uint64_t add(uint64_t n) { return n + calls; }
__attribute__((noinline)) static uint64_t twice(uint64_t n) { return n * 2 + calls; }

static step *const all[] = {add, twice};
static const struct operations adds = {add}, doubles = {twice};
static const struct operations *used;
static step *first, *before, *from_table, *volatile hidden;
static uintptr_t as_number;

void pointers_main(void *payload, size_t payload_size, void *target_args) {
  (void)payload_size, (void)target_args;
  const uint64_t n = *(const uint64_t *)payload;
  ++calls;
  if (first == NULL) {
    first = hidden = add;
    from_table = all[n % 2];
    used = n % 2 ? &adds : &doubles;
    as_number = (uintptr_t)add;
  }
  step *const now = n % 2 ? add : twice;
  const uint64_t answer[] = {calls,
                             first == add,
                             first == twice,
                             before == now,
                             before == first,
                             from_table == all[0],
                             from_table == all[1],
                             used->step == add,
                             used == &adds,
                             as_number == (uintptr_t)add,
                             hidden == add,
                             first(n) + now(n)};
  before = now;
  tc_reply(answer, sizeof answer);
}
