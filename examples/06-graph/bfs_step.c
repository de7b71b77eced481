/* SPDX-License-Identifier: Apache-2.0
 *
 * The ifunc `bfs_step`: one level of a breadth-first search at one server. It looks at the rows where they lie, and
 * sends itself, with the neighbours that it found, to the servers that own them; the client sees counts only.
 */
#include <string.h>
#include <threechains/ifunc.h>

#include "bfs.h"

struct search {
  const struct graph_shard *shard;
  struct bfs_memory memory;
};

static void fail(const char *why) { tc_fail(TC_ERR_INVALID, why); }

/* A search begins at a server with its first message, step or batch: nobody has to be told beforehand. */
static void begin(const struct search *search, uint64_t query) {
  const struct bfs_memory *memory = &search->memory;
  memset(memory->slot, 0, sizeof *memory->slot);
  memset(memory->level, 0xff, (size_t)search->shard->rows * sizeof *memory->level);
  memset(memory->sent, 0, ((size_t)search->shard->vertices / 64 + 1) * sizeof *memory->sent);
  memory->slot->query = query;
}

/* Finds shard and memory, and makes the slot this query's. 0 after a tc_fail(), and for what an abandoned search left
 * on its way. */
static int enter(const struct bfs_message *message, size_t size, struct search *search) {
  size_t shard_bytes = 0, scratch_bytes = 0;
  search->shard = tc_data(BFS_SHARD, &shard_bytes);
  unsigned char *scratch = tc_data(BFS_SCRATCH, &scratch_bytes);
  if (size < sizeof *message || (size - sizeof *message) / 4 != message->count)
    return fail("the message of bfs_step is not as long as it says"), 0;
  if (!graph_is_shard(search->shard, shard_bytes))
    return fail("this server has no shard of a graph: serve it with --data graph=FILE"), 0;
  const uint32_t vertices = search->shard->vertices, shards = search->shard->shards;
  if (shards != tc_count() || search->shard->shard != tc_id())
    return fail("the shard is another server's: server I of S needs shard I of S"), 0;
  const uint64_t slot_bytes = bfs_slot_bytes(vertices, shards);
  if (scratch == NULL || scratch_bytes / slot_bytes <= message->slot)
    return fail(
               "this server has too little memory for a search: serve it with --scratch scratch=BYTES, as many as "
               "make_shards said"),
           0;
  search->memory = bfs_memory_at(scratch + message->slot * slot_bytes, vertices, shards);
  const uint64_t current = search->memory.slot->query;
  if (message->query > current) begin(search, message->query);
  if (message->query >= current) return 1;
  if (message->kind == BFS_STEP) fail("another search has taken this slot");
  return 0;
}

/* Row `row` is on `level`, unless it is known to be nearer. A list has room for each row once, which is what honest
 * messages need. */
static inline void reach(const struct search *search, uint32_t row, uint32_t level) {
  const struct bfs_memory *memory = &search->memory;
  uint32_t *length = &memory->slot->length[level & 1];
  if (memory->level[row] <= level || *length >= search->shard->rows) return;
  memory->level[row] = level;
  memory->list[level & 1][(*length)++] = row;
}

/* Reaches the rows that a message brought. */
static int take(const struct search *search, const struct bfs_message *message) {
  const uint32_t *rows = (const uint32_t *)(const void *)(message + 1);
  for (uint32_t i = 0; i < message->count; ++i) {
    if (rows[i] >= search->shard->rows) return fail("a row that this server does not have"), 0;
    reach(search, rows[i], message->level);
  }
  return 1;
}

static inline struct bfs_message *batch_for(const struct bfs_memory *memory, uint32_t server) {
  return (struct bfs_message *)(void *)(memory->out + server * memory->out_stride);
}

/* All neighbours of `row` belong to the next level or to an earlier one. Those of other servers are noted, once in a
 * search, for one batch each. The number of neighbours; a damaged shard has none. */
static uint64_t expand(const struct search *search, uint32_t row, uint32_t next) {
  const struct graph_shard *shard = search->shard;
  const struct bfs_memory *memory = &search->memory;
  const uint64_t *offsets = graph_offsets(shard);
  const uint32_t *neighbours = graph_neighbours(shard);
  const uint64_t from = offsets[row], to = offsets[row + 1];
  if (from > to || to > shard->local_edges) return 0;
  for (uint64_t i = from; i < to; ++i) {
    const uint32_t vertex = neighbours[i];
    if (vertex >= shard->vertices) continue;
    const uint32_t owner = graph_owner(vertex, shard->shards), there = graph_row(vertex, shard->shards);
    if (owner == shard->shard) {
      reach(search, there, next);
      continue;
    }
    const uint64_t bit = (uint64_t)1 << (vertex % 64);
    if (memory->sent[vertex / 64] & bit) continue;
    memory->sent[vertex / 64] |= bit;
    struct bfs_message *batch = batch_for(memory, owner);
    ((uint32_t *)(void *)(batch + 1))[batch->count++] = there;
  }
  return to - from;
}

/* Sends the batches; `counts` receives how many vertices each server got. */
static int send_batches(const struct search *search, uint32_t *counts) {
  for (uint32_t server = 0; server < search->shard->shards; ++server) {
    const struct bfs_message *batch = batch_for(&search->memory, server);
    counts[server] = batch->count;
    if (batch->count == 0) continue;
    const tc_status_t status =
        tc_inject(server, "bfs_step", batch, sizeof *batch + (size_t)batch->count * sizeof(uint32_t));
    if (status == TC_OK) continue;
    char why[] = "cannot send a batch to server ??";
    char *digit = why + sizeof why - 3;
    if (server >= 10) *digit++ = (char)('0' + server / 10 % 10);
    *digit++ = (char)('0' + server % 10);
    *digit = '\0';
    tc_fail((int32_t)status, why);
    return 0;
  }
  return 1;
}

static void step(const struct search *search, const struct bfs_message *message) {
  const struct bfs_memory *memory = &search->memory;
  struct bfs_slot *slot = memory->slot;
  const uint32_t level = message->level, parity = level & 1, shards = search->shard->shards;
  struct {
    struct bfs_answer head;
    uint32_t sent[BFS_MOST_SERVERS];
  } answer;
  memset(&answer, 0, sizeof answer);
  answer.head.servers = shards;
  if (shards > BFS_MOST_SERVERS) return fail("more servers than one call may send batches to");
  if (level < slot->next_level || level >= BFS_UNREACHED - 1) return fail("this step was done before");
  if (slot->arrived[parity] < message->batches) {
    answer.head.waiting = 1;
    tc_reply(&answer, sizeof answer.head + shards * sizeof(uint32_t));
    return;
  }
  if (slot->arrived[parity] > message->batches) return fail("more batches came than were sent");
  if (!take(search, message)) return;

  struct bfs_message empty = *message;
  empty.kind = BFS_BATCH;
  empty.level = level + 1;
  empty.batches = empty.count = 0;
  for (uint32_t server = 0; server < shards; ++server) *batch_for(memory, server) = empty;
  for (uint32_t i = 0; i < slot->length[parity]; ++i) {
    const uint32_t row = memory->list[parity][i];
    if (memory->level[row] != level) continue; /* reached again, from nearer, before this step */
    answer.head.edges += expand(search, row, level + 1);
    ++answer.head.expanded;
  }
  slot->next_level = level + 1;
  slot->arrived[parity] = slot->length[parity] = 0; /* for the level after the next */
  if (!send_batches(search, answer.sent)) return;
  answer.head.found = slot->length[parity ^ 1];
  tc_reply(&answer, sizeof answer.head + shards * sizeof(uint32_t));
}

void bfs_step_main(void *payload, size_t payload_size, void *target_args) {
  const struct bfs_message *message = payload;
  struct search search;
  (void)target_args;
  if (!enter(message, payload_size, &search)) return;
  if (message->kind == BFS_STEP) return step(&search, message);
  if (message->kind != BFS_BATCH || message->level < search.memory.slot->next_level)
    return fail("neither a step nor a batch of a level that is to come");
  if (take(&search, message)) ++search.memory.slot->arrived[message->level & 1];
}
