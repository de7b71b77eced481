/* SPDX-License-Identifier: Apache-2.0
 *
 * One server's part of a directed graph, as it lies in a shard file and in the server's memory: compressed sparse rows
 * (CSR) of the vertices that the server owns.
 *
 * Vertices are the numbers from 0 to one less than `vertices`. Vertex v belongs to server v mod S and is row v div S
 * there: anybody can tell where a vertex lives without asking, and neither the order in which a list names its vertices
 * nor the large degrees that crowd at low numbers put more work on one server, as ranges of numbers would.
 *
 * A file is the header, `rows` + 1 offsets and `local_edges` neighbours; the neighbours of row r are those from
 * offset r up to, not including, offset r + 1. All numbers are little-endian.
 */
#ifndef THREECHAINS_EXAMPLE_GRAPH_H
#define THREECHAINS_EXAMPLE_GRAPH_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define GRAPH_MAGIC 0x3148505247435433u /* "3TCGRPH1" */
#define GRAPH_MOST_VERTICES 0xfffffff0u /* numbers above mean "none" */
#define GRAPH_MOST_SHARDS 1024u

struct graph_shard {
  uint64_t magic;
  uint32_t shard, shards; /* which part of how many */
  uint32_t vertices;      /* of the whole graph */
  uint32_t rows;          /* vertices that this server owns */
  uint64_t edges;         /* of the whole graph */
  uint64_t local_edges;   /* of this part */
};

static inline uint32_t graph_owner(uint32_t vertex, uint32_t shards) { return vertex % shards; }
static inline uint32_t graph_row(uint32_t vertex, uint32_t shards) { return vertex / shards; }
static inline uint32_t graph_vertex(uint32_t shard, uint32_t row, uint32_t shards) { return row * shards + shard; }

/* How many of `vertices` belong to server `shard`. */
static inline uint32_t graph_rows(uint32_t vertices, uint32_t shard, uint32_t shards) {
  return vertices / shards + (shard < vertices % shards);
}

static inline uint64_t graph_shard_bytes(uint64_t rows, uint64_t local_edges) {
  return sizeof(struct graph_shard) + (rows + 1) * sizeof(uint64_t) + local_edges * sizeof(uint32_t);
}

static inline const uint64_t* graph_offsets(const struct graph_shard* shard) {
  return (const uint64_t*)(const void*)(shard + 1);
}
static inline const uint32_t* graph_neighbours(const struct graph_shard* shard) {
  return (const uint32_t*)(const void*)(graph_offsets(shard) + shard->rows + 1);
}

/* Is what lies there a shard that fits into `size` bytes? Offsets are checked where they are used. */
static inline int graph_is_shard(const struct graph_shard* shard, size_t size) {
  return shard != NULL && size >= sizeof *shard && shard->magic == GRAPH_MAGIC && shard->shards != 0 &&
         shard->shard < shard->shards && shard->rows == graph_rows(shard->vertices, shard->shard, shard->shards) &&
         shard->local_edges <= size / sizeof(uint32_t) && size >= graph_shard_bytes(shard->rows, shard->local_edges);
}

#ifdef __cplusplus
}
#endif
#endif
