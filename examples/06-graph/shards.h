/* SPDX-License-Identifier: Apache-2.0
 *
 * From a list of edges to shards (graph.h): what make_shards and the benchmark share.
 */
#ifndef THREECHAINS_EXAMPLE_SHARDS_H
#define THREECHAINS_EXAMPLE_SHARDS_H

#include <stdlib.h>
#include <string.h>

#include "graph.h"

struct graph_edge {
  uint32_t from, to;
};

/* Makes shard `shard` of `shards`: memory of *bytes bytes, to be freed with free(); NULL when there is none. Both ends
 * of every edge are below `vertices`. Neighbours keep the order of the list. */
static inline struct graph_shard* graph_make_shard(const struct graph_edge* edges, uint64_t count, uint32_t vertices,
                                                   uint32_t shard, uint32_t shards, uint64_t* bytes) {
  const uint32_t rows = graph_rows(vertices, shard, shards);
  uint64_t local = 0;
  for (uint64_t i = 0; i < count; ++i) local += graph_owner(edges[i].from, shards) == shard;
  *bytes = graph_shard_bytes(rows, local);
  struct graph_shard* made = (struct graph_shard*)calloc(1, *bytes);
  if (made == NULL) return NULL;
  made->magic = GRAPH_MAGIC;
  made->shard = shard;
  made->shards = shards;
  made->vertices = vertices;
  made->rows = rows;
  made->edges = count;
  made->local_edges = local;
  /* Count, sum up, and fill each row from its end: offsets then point at the beginnings. */
  uint64_t* offsets = (uint64_t*)(void*)(made + 1);
  uint32_t* neighbours = (uint32_t*)(void*)(offsets + rows + 1);
  for (uint64_t i = 0; i < count; ++i)
    if (graph_owner(edges[i].from, shards) == shard) ++offsets[graph_row(edges[i].from, shards)];
  for (uint32_t row = 1; row < rows; ++row) offsets[row] += offsets[row - 1];
  offsets[rows] = local;
  for (uint64_t i = count; i-- > 0;)
    if (graph_owner(edges[i].from, shards) == shard)
      neighbours[--offsets[graph_row(edges[i].from, shards)]] = edges[i].to;
  return made;
}

#endif
