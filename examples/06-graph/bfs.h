/* SPDX-License-Identifier: Apache-2.0
 *
 * What the ifuncs of the breadth-first search, and whoever sends them, agree on: their messages, and what a search keeps
 * in a server's memory. README.md says how the search works and why no order of messages can make it wrong.
 */
#ifndef THREECHAINS_EXAMPLE_BFS_H
#define THREECHAINS_EXAMPLE_BFS_H

#include "graph.h"

#ifdef __cplusplus
extern "C" {
#endif

#define BFS_SHARD "graph"     /* the shard, by tc_data() */
#define BFS_SCRATCH "scratch" /* memory for searches, zero when the server starts: slots, one behind the other */
#define BFS_UNREACHED 0xffffffffu
#define BFS_MOST_SERVERS 17u /* one batch to each of the others: as many as a call's fan-out allows */

enum bfs_kind {
  BFS_STEP = 1, /* from the client: expand the vertices of this level */
  BFS_BATCH,    /* from another server: these rows of yours are neighbours of the level before */
};

/* The payload of `bfs_step`, with `count` rows behind it: the source with step 0, the rows found with a batch. */
struct bfs_message {
  uint64_t query; /* a later search in the same slot has a larger number */
  uint32_t kind;
  uint32_t slot;
  uint32_t level;
  uint32_t batches; /* a step: how many batches of this level were sent to this server */
  uint32_t count;
  uint32_t reserved;
};

/* The answer to a step, with `servers` numbers behind it: how many vertices went to each server in a batch. */
struct bfs_answer {
  uint32_t waiting; /* 1: batches are still on their way, nothing was done, ask again */
  uint32_t servers;
  uint64_t expanded; /* vertices of this level */
  uint64_t edges;    /* looked at */
  uint64_t found;    /* vertices of this server that will be the next level, so far */
};

/* The payload of `bfs_read`; the answer is `count` levels, as uint32_t, from row `first` on. */
struct bfs_range {
  uint64_t query;
  uint32_t slot;
  uint32_t first, count;
  uint32_t reserved;
};

/* One search at one server. Two levels can be open at once: a server that is ahead may send a batch of the next one
 * while a batch of this one is still on its way. Their lists are told apart by the level's last bit. */
struct bfs_slot {
  uint64_t query;
  uint32_t next_level; /* steps below were done */
  uint32_t arrived[2]; /* batches */
  uint32_t length[2];
};

struct bfs_memory {
  struct bfs_slot* slot;
  uint32_t* level;    /* of each row */
  uint32_t* list[2];  /* rows found for a level */
  uint64_t* sent;     /* a bit for each vertex: sent to its owner already */
  unsigned char* out; /* a batch for each server */
  uint64_t out_stride;
};

static inline uint64_t bfs_aligned(uint64_t bytes) { return (bytes + 63) & ~(uint64_t)63; }

/* How far the batches of two servers are apart. */
static inline uint64_t bfs_out_stride(uint32_t vertices, uint32_t shards) {
  return bfs_aligned(sizeof(struct bfs_message) + 4 * ((uint64_t)vertices / shards + 1));
}

/* Bytes of memory that one search needs at a server: the same at all of them. */
static inline uint64_t bfs_slot_bytes(uint32_t vertices, uint32_t shards) {
  const uint64_t rows = (uint64_t)vertices / shards + 1;
  return bfs_aligned(sizeof(struct bfs_slot)) + 3 * bfs_aligned(4 * rows) + bfs_aligned((uint64_t)vertices / 8 + 8) +
         shards * bfs_out_stride(vertices, shards);
}

static inline struct bfs_memory bfs_memory_at(unsigned char* at, uint32_t vertices, uint32_t shards) {
  const uint64_t list = bfs_aligned(4 * ((uint64_t)vertices / shards + 1));
  struct bfs_memory memory;
  memory.slot = (struct bfs_slot*)(void*)at;
  at += bfs_aligned(sizeof(struct bfs_slot));
  memory.level = (uint32_t*)(void*)at;
  memory.list[0] = (uint32_t*)(void*)(at + list);
  memory.list[1] = (uint32_t*)(void*)(at + 2 * list);
  at += 3 * list;
  memory.sent = (uint64_t*)(void*)at;
  memory.out = at + bfs_aligned((uint64_t)vertices / 8 + 8);
  memory.out_stride = bfs_out_stride(vertices, shards);
  return memory;
}

#ifdef __cplusplus
}
#endif
#endif
