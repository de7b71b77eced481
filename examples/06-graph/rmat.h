/* SPDX-License-Identifier: Apache-2.0
 *
 * Large graphs as social networks are shaped: R-MAT (Chakrabarti, Zhan, Faloutsos 2004) with the probabilities of
 * Graph500, the same for the same seed everywhere.
 */
#ifndef THREECHAINS_EXAMPLE_RMAT_H
#define THREECHAINS_EXAMPLE_RMAT_H

#include "shards.h"

/* SplitMix64 (Steele, Lea, Flood 2014). */
static inline uint64_t rmat_next(uint64_t* state) {
  uint64_t z = (*state += 0x9e3779b97f4a7c15u);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

/* Shuffles the numbers of 2^scale vertices, so that a number says nothing of its vertex's degree: rounds of a
 * multiplication by an odd number and a shift, each of which can be undone, so no two vertices meet. */
static inline uint32_t rmat_scramble(uint32_t vertex, uint32_t scale, uint64_t seed) {
  const uint64_t mask = ((uint64_t)1 << scale) - 1;
  uint64_t state = ~seed, v = vertex;
  for (int round = 0; round < 3; ++round) {
    v = (v * (rmat_next(&state) | 1) + rmat_next(&state)) & mask;
    v ^= v >> (scale / 2 + 1);
  }
  return (uint32_t)v;
}

/* Edge number `index` of the graph with 2^scale vertices, scale from 1 to 31: each bit of both ends is drawn with
 * probabilities 0.57, 0.19, 0.19 and 0.05. Loops and repeated edges occur, as in Graph500. */
static inline struct graph_edge rmat_edge(uint64_t index, uint32_t scale, uint64_t seed) {
  uint64_t state = seed * 0xd1342543de82ef95u + index * 0x2545f4914f6cdd1du;
  uint32_t from = 0, to = 0;
  for (uint32_t bit = 0; bit < scale; ++bit) {
    const uint32_t draw = (uint32_t)(rmat_next(&state) >> 32) / 42949673u; /* 0 to 99 */
    from = from << 1 | (draw >= 76);
    to = to << 1 | (draw >= 95 || (draw >= 57 && draw < 76));
  }
  struct graph_edge edge;
  edge.from = rmat_scramble(from, scale, seed);
  edge.to = rmat_scramble(to, scale, seed);
  return edge;
}

#endif
