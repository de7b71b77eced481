/* SPDX-License-Identifier: Apache-2.0
 *
 * The ifunc `graph_info`: answers with the head of the shard that a server holds.
 */
#include <threechains/ifunc.h>

#include "bfs.h"

void graph_info_main(void *payload, size_t payload_size, void *target_args) {
  size_t bytes = 0;
  const struct graph_shard *shard = tc_data(BFS_SHARD, &bytes);
  (void)payload, (void)payload_size, (void)target_args;
  if (!graph_is_shard(shard, bytes))
    return tc_fail(TC_ERR_NOT_FOUND, "this server has no shard of a graph: serve it with --data graph=FILE");
  tc_reply(shard, sizeof *shard);
}
