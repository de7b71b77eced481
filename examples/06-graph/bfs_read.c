/* SPDX-License-Identifier: Apache-2.0
 *
 * The ifunc `bfs_read`: answers with the levels that a search left at a server.
 */
#include <threechains/ifunc.h>

#include "bfs.h"

void bfs_read_main(void *payload, size_t payload_size, void *target_args) {
  const struct bfs_range *range = payload;
  size_t shard_bytes = 0, scratch_bytes = 0;
  const struct graph_shard *shard = tc_data(BFS_SHARD, &shard_bytes);
  unsigned char *scratch = tc_data(BFS_SCRATCH, &scratch_bytes);
  (void)target_args;
  if (payload_size != sizeof *range || !graph_is_shard(shard, shard_bytes) || scratch == NULL)
    return tc_fail(TC_ERR_INVALID, "no such search here");
  const uint64_t slot_bytes = bfs_slot_bytes(shard->vertices, shard->shards);
  if (scratch_bytes / slot_bytes <= range->slot || range->first > shard->rows ||
      range->count > shard->rows - range->first)
    return tc_fail(TC_ERR_INVALID, "no such slot or rows here");
  const struct bfs_memory memory = bfs_memory_at(scratch + range->slot * slot_bytes, shard->vertices, shard->shards);
  if (memory.slot->query == range->query) {
    tc_reply(memory.level + range->first, (size_t)range->count * sizeof *memory.level);
    return;
  }
  /* Slots keep the latest search: an earlier one never came here, a later one has taken its place. */
  if (memory.slot->query > range->query) return tc_fail(TC_ERR_NOT_FOUND, "another search has taken this slot");
  tc_reply("", 0);
}
