/* SPDX-License-Identifier: Apache-2.0
 *
 * Neighbourhood sampling, as graph neural networks are fed: from one vertex, up to `fan` of its neighbours, up to `fan`
 * of theirs, and so on for `hops` hops. What is drawn depends on seed, vertex and hop alone, so that the answer does not
 * depend on who computes it or when.
 */
#ifndef THREECHAINS_EXAMPLE_SAMPLE_H
#define THREECHAINS_EXAMPLE_SAMPLE_H

#include "graph.h"

enum { sample_most_edges = 4096, sample_most_hops = 16 };

/* The payload of `sample_step`, which is also its answer, with `count` edges behind it. */
struct sample_head {
  uint64_t seed;
  uint32_t hops, fan;
  uint32_t count;
  uint32_t reserved;
};

/* An edge that was drawn. Edge 0 stands for the beginning: it leads to the first vertex, with hop 0. */
struct sample_edge {
  uint32_t from, to;
  uint32_t hop;  /* 1: from the first vertex */
  uint32_t done; /* were the neighbours of `to` drawn (or need not be)? */
};

#endif
