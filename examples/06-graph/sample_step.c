/* SPDX-License-Identifier: Apache-2.0
 *
 * The ifunc `sample_step`: a sample of a vertex's neighbourhood (sample.h). It keeps nothing at any server. It carries
 * what it has drawn, draws on where it stands, goes to a server where there is more to draw, and answers from the last
 * one.
 */
#include <string.h>
#include <threechains/ifunc.h>

#include "sample.h"

struct sample {
  struct sample_head head;
  struct sample_edge edges[sample_most_edges];
};

/* SplitMix64 (Steele, Lea, Flood 2014). */
static uint64_t next(uint64_t *state) {
  uint64_t z = (*state += 0x9e3779b97f4a7c15u);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

/* A vertex that two edges of the same hop lead to is drawn from once. */
static uint32_t is_drawn_elsewhere(const struct sample *sample, uint32_t to, uint32_t hop) {
  for (uint32_t i = 0; i < sample->head.count; ++i)
    if (sample->edges[i].to == to && sample->edges[i].hop == hop) return 1;
  return 0;
}

static int add(struct sample *sample, uint32_t from, uint32_t to, uint32_t hop) {
  if (sample->head.count == sample_most_edges) return 0;
  const uint32_t done = hop >= sample->head.hops || is_drawn_elsewhere(sample, to, hop);
  const struct sample_edge edge = {from, to, hop, done};
  sample->edges[sample->head.count++] = edge;
  return 1;
}

/* Draws up to `fan` different neighbours, each set of that size equally likely (selection sampling: Knuth, vol. 2,
 * algorithm S). */
static int draw(struct sample *sample, const struct graph_shard *shard, uint32_t vertex, uint32_t hop) {
  const uint32_t row = graph_row(vertex, shard->shards);
  const uint64_t from = graph_offsets(shard)[row], to = graph_offsets(shard)[row + 1];
  uint64_t state = sample->head.seed ^ ((uint64_t)vertex << 8 | hop) * 0xd1342543de82ef95u;
  if (from > to || to > shard->local_edges) return 1; /* a damaged shard */
  uint64_t wanted = sample->head.fan;
  for (uint64_t i = from; i < to && wanted > 0; ++i) {
    if (next(&state) % (to - i) >= wanted) continue;
    --wanted;
    if (!add(sample, vertex, graph_neighbours(shard)[i], hop + 1)) return 0;
  }
  return 1;
}

static void fail(const char *why) { tc_fail(TC_ERR_INVALID, why); }

void sample_step_main(void *payload, size_t payload_size, void *target_args) {
  struct sample sample;
  size_t bytes = 0;
  const struct graph_shard *shard = tc_data("graph", &bytes);
  (void)target_args;
  if (!graph_is_shard(shard, bytes) || shard->shards != tc_count() || shard->shard != tc_id())
    return fail("this server does not hold its shard of a graph: serve it with --data graph=FILE");
  if (payload_size < sizeof sample.head || payload_size > sizeof sample) return fail("not a sample's payload");
  memcpy(&sample, payload, payload_size);
  if ((payload_size - sizeof sample.head) / sizeof *sample.edges != sample.head.count || sample.head.count == 0 ||
      sample.head.hops > sample_most_hops)
    return fail("a sample that contradicts itself");

  for (uint32_t i = 0; i < sample.head.count; ++i) { /* what is added here is looked at here, too */
    struct sample_edge *edge = &sample.edges[i];
    if (edge->done || edge->to >= shard->vertices || graph_owner(edge->to, shard->shards) != shard->shard) continue;
    edge->done = 1;
    if (!draw(&sample, shard, edge->to, edge->hop)) return fail("a sample of more than 4096 edges: ask for less");
  }
  const size_t size = sizeof sample.head + sample.head.count * sizeof *sample.edges;
  for (uint32_t i = 0; i < sample.head.count; ++i) {
    if (sample.edges[i].done || sample.edges[i].to >= shard->vertices) continue;
    const tc_status_t status = tc_forward(graph_owner(sample.edges[i].to, shard->shards), &sample, size);
    if (status != TC_OK) tc_fail((int32_t)status, "cannot travel to the next server");
    return;
  }
  tc_reply(&sample, size);
}
