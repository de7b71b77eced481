/* SPDX-License-Identifier: Apache-2.0
 *
 * The distributed pointer chase (main paper, IV.C): the table, and what travels. Shared by the ifuncs and by the
 * programs that fill tables and start chases.
 *
 * The table has one 64-bit entry for each address: the next address. Each of S servers holds an equal shard of N
 * entries, addresses server * N to server * N + N - 1, and exposes it as CHASE_TABLE. All entries together are one
 * cycle, drawn from a seed: whoever knows seed and size builds the same table, on any machine.
 */
#ifndef CHASE_H
#define CHASE_H

#include <stdint.h>

#define CHASE_TABLE "chase-table"
#define CHASE_RESULT "chase-result"

/* The Chaser's payload: load the entry at `address`, then the entry at the address found there, `depth` times. */
struct chase {
  uint64_t address;
  uint32_t depth;
  uint32_t destination; /* the node that gets a ReturnResult, or CHASE_TO_CALLER */
};
#define CHASE_TO_CALLER UINT32_MAX

/* What ReturnResult leaves at its destination, in the data named CHASE_RESULT. */
struct chase_result {
  uint64_t address; /* what the last entry held */
  uint64_t count;   /* results that came so far */
};

/* splitmix64: the same numbers everywhere. */
static inline uint64_t chase_random(uint64_t* state) {
  uint64_t z = (*state += 0x9e3779b97f4a7c15u);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

/* A number below `limit`, which is at most 2^32. */
static inline uint64_t chase_random_below(uint64_t* state, uint64_t limit) {
  return ((chase_random(state) >> 32) * limit) >> 32;
}

/* Fills `next` with one random cycle through all `entries` addresses (Sattolo's algorithm). */
static inline void chase_fill(uint64_t* next, uint64_t entries, uint64_t seed) {
  for (uint64_t i = 0; i < entries; ++i) next[i] = i;
  for (uint64_t i = entries; i-- > 1;) {
    const uint64_t j = chase_random_below(&seed, i);
    const uint64_t swapped = next[i];
    next[i] = next[j];
    next[j] = swapped;
  }
}

/* Where the `index`-th chase of a series starts. */
static inline uint64_t chase_start(uint64_t index, uint64_t entries, uint64_t seed) {
  uint64_t state = ~seed ^ index * 0xd1342543de82ef95u;
  return chase_random_below(&state, entries);
}

/* What a chase must give: the same walk through the whole table. */
static inline uint64_t chase_walk(const uint64_t* next, uint64_t address, uint32_t depth) {
  while (depth-- > 0) address = next[address];
  return address;
}

#endif
