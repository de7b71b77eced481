/* SPDX-License-Identifier: Apache-2.0
 *
 * The payload of the ifunc `story`, and the journal that it writes: for the simulated cluster (tests/simulation).
 */
#ifndef TC_TESTS_STORY_H
#define TC_TESTS_STORY_H

#include <stdint.h>

enum story_end { story_replies, story_fails, story_says_nothing };

/* The filler stands behind it. */
struct story {
  uint64_t id;
  uint64_t sum;        /* story_sum() of the filler */
  uint32_t end;        /* enum story_end, at the last node */
  uint32_t step;       /* how often it has travelled on */
  uint32_t steps;      /* how often it is to */
  uint32_t injections; /* at its first node it injects itself, with an end, into so many nodes of the route */
  uint8_t route[16];   /* nodes to travel to */
};

struct story_entry {
  uint64_t id;
  uint32_t step;
  uint16_t version;
  uint16_t is_whole; /* the filler is what it was */
};

/* The number of an injected story. */
#define STORY_CHILD(id, n) ((id) | (uint64_t)((n) + 1) << 48)

struct story_journal {
  uint64_t count;
  struct story_entry entries[4096];
};

static inline uint64_t story_sum(const unsigned char* filler, uint64_t size) {
  uint64_t sum = size;
  for (uint64_t i = 0; i < size; ++i) sum = sum * 31 + filler[i];
  return sum;
}

#endif
