/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks its payload, writes down that it ran, and does what its payload says: goes on to the next node of its route,
 * replies or fails. Built several times with another WITNESS_VARIANT, so that there is different code of one behaviour.
 */
#include "witness.h"

#include <threechains/ifunc.h>

const char witness_variant[] = "variant " WITNESS_VARIANT;

static uint8_t verdict_on(const unsigned char *payload, size_t size, struct witness_head *head) {
  if (size < WITNESS_NAMED) {
    for (size_t i = 0; i < size; ++i)
      if (payload[i] != payload[0]) return WITNESS_BAD_BODY;
    if (size != 0) head->source = payload[0];
    return WITNESS_TINY;
  }
  memcpy(head, payload, size < sizeof *head ? WITNESS_NAMED : sizeof *head);
  if (size >= sizeof *head && head->check != witness_check(head)) return WITNESS_BAD_HEAD;
  if (size >= sizeof *head && head->size != size) return WITNESS_BAD_SIZE;
  const size_t begin = size < sizeof *head ? WITNESS_NAMED : sizeof *head;
  return witness_difference(payload, begin, size, witness_key(head->source, head->number, 0)) == size
             ? WITNESS_GOOD
             : WITNESS_BAD_BODY;
}

static tc_status_t reply(const struct witness_head *head) {
  size_t room = 0;
  unsigned char *const answer = tc_data("answer", &room);
  if (answer == NULL || room < head->reply_size) return TC_ERR_INTERNAL;
  witness_fill(answer, 0, head->reply_size, witness_key(head->source, head->number, 1));
  return tc_reply(answer, head->reply_size);
}

/* Goes on to the next node. A call that injects is answered here, and what it injected answers nobody. */
static tc_status_t go_on(unsigned char *payload, size_t size, struct witness_head head, uint8_t *action) {
  const uint8_t step = head.route[head.hop++];
  const uint32_t node = step & WITNESS_NODE;
  *action = step & ~WITNESS_NODE;
  const struct witness_head here = head;
  if (*action == WITNESS_INJECTS) head.then = WITNESS_ENDS;
  head.check = witness_check(&head);
  memcpy(payload, &head, sizeof head);
  if (*action == WITNESS_FORWARDS) return tc_forward(node, payload, size);
  if (*action == WITNESS_FORWARDS_AS) return tc_forward_as(node, "witness_0", payload, size);
  const tc_status_t injected = tc_inject(node, "witness_0", payload, size);
  if (injected == TC_OK && here.then == WITNESS_REPLIES) (void)reply(&here);
  return injected;
}

static void act(unsigned char *payload, size_t size, const struct witness_head *head, struct witness_run *run) {
  if (head->hop < head->hops) {
    run->status = (uint8_t)go_on(payload, size, *head, &run->action);
    if (run->status != TC_OK) tc_fail(WITNESS_CANNOT_GO_ON + run->status, "cannot go on");
    return;
  }
  if (head->then == WITNESS_REPLIES) run->status = (uint8_t)reply(head);
  if (head->then == WITNESS_FAILS) tc_fail(WITNESS_FAILED, "fails as it was told to");
}

void WITNESS_MAIN(void *payload, size_t size, void *target_args) {
  (void)target_args;
  struct witness_runs *const runs = tc_data("runs", NULL);
  uint64_t *const clock = tc_data("clock", NULL);
  if (runs == NULL || clock == NULL) return tc_fail(1, "this node is no part of the property test");
  const uint64_t seq = __atomic_add_fetch(clock, 1, __ATOMIC_SEQ_CST);
  const uint64_t at = __atomic_fetch_add(&runs->count, 1, __ATOMIC_SEQ_CST);
  if (at >= runs->capacity) return;
  struct witness_head head = {0};
  struct witness_run *const run = &runs->run[at];
  run->seq = seq;
  run->size = (uint32_t)size;
  run->incarnation = (uint16_t)runs->incarnation;
  run->verdict = verdict_on(payload, size, &head);
  run->number = head.number;
  run->source = head.source;
  run->hop = head.hop;
  if (run->verdict == WITNESS_GOOD && size >= sizeof head) act(payload, size, &head, run);
  __atomic_store_n(&run->complete, witness_variant[0] != 0, __ATOMIC_RELEASE);
}
