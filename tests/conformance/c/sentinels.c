// SPDX-License-Identifier: Apache-2.0
// Keeps addresses of constants and of variables, and compares them later.
#include <threechains/ifunc.h>

struct node {
  const struct node *next;
  uint64_t value;
};

static const struct node end = {&end, 0};
static struct node nodes[8];
static const struct node *list = &end;
static const char idle[] = "idle", busy[] = "busy";
static const char *state = idle;
static const uint64_t table[] = {1, 2, 3, 4};
static const uint64_t *at = table;
static uint64_t calls, *own = &calls;

void sentinels_main(void *payload, size_t payload_size, void *target_args) {
  (void)payload_size, (void)target_args;
  const uint64_t n = *(const uint64_t *)payload;
  ++calls;
  nodes[calls % 8] = (struct node){list, n};
  if (calls % 8 == 0) nodes[0].next = &end;
  list = &nodes[calls % 8];
  uint64_t length = 0, sum = 0;
  for (const struct node *node = list; node != &end && length < 20; node = node->next) ++length, sum += node->value;
  const uint64_t was_idle = state == idle, was_busy = state == busy;
  state = n % 3 == 0 ? idle : busy;
  at = at == table + 3 ? table : at + 1;
  const uint64_t answer[] = {
      calls, length, sum, was_idle, was_busy, (uint64_t)state[0], *at, (uint64_t)(at - table), own == &calls, *own};
  tc_reply(answer, sizeof answer);
}
