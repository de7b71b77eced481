// SPDX-License-Identifier: Apache-2.0
//
// Writes in the journal of each node that it comes to, travels as its payload says, and ends as that says.
#include "story.h"

#include <threechains/ifunc.h>

void story_main(void *payload, size_t payload_size, void *target_args) {
  (void)target_args;
  struct story *story = payload;
  if (payload_size < sizeof *story) return tc_fail(1, "the payload is too short");
  struct story_journal *journal = tc_data("journal", 0);
  if (journal == 0) return tc_fail(2, "there is no journal");
  const uint64_t sum = story_sum((const unsigned char *)(story + 1), payload_size - sizeof *story);
  const struct story_entry entry = {story->id, story->step, STORY_VERSION, sum == story->sum};
  if (journal->count < sizeof journal->entries / sizeof *journal->entries) journal->entries[journal->count] = entry;
  ++journal->count;

  struct story child = *story;
  child.end = story_says_nothing, child.sum = 0, child.step = child.steps = child.injections = 0;
  for (uint32_t i = 0; story->step == 0 && i < story->injections; ++i) {
    child.id = STORY_CHILD(story->id, i);
    const tc_status_t status = tc_inject(story->route[i], "story", &child, sizeof child);
    if (status != TC_OK) return tc_fail(200 + (int32_t)status, "it cannot inject");
  }
  if (story->step < story->steps) {
    const uint32_t next = story->route[story->step++];
    const tc_status_t status = tc_forward(next, story, payload_size);
    if (status != TC_OK) tc_fail(100 + (int32_t)status, "it cannot travel on");
    return;
  }
  if (story->end == story_fails) return tc_fail(7, "as it was told");
  if (story->end != story_replies) return;
  const tc_status_t status = tc_reply(story, payload_size < 4096 ? payload_size : 4096);
  if (status != TC_OK) tc_fail(300 + (int32_t)status, "it cannot answer");
}
