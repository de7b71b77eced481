// SPDX-License-Identifier: Apache-2.0
//
// The Chaser (main paper, IV.C): follows a chain of addresses through a table that is spread over the servers. Steps
// inside a shard are loads; to leave it, the ifunc sends itself to the server that holds the next entry.
#include <threechains/ifunc.h>

#include "chase.h"

enum { bad_payload = 1, no_table, no_such_address, cannot_travel, cannot_answer };

static void finish(uint64_t address, uint32_t destination) {
  if (destination == CHASE_TO_CALLER) {
    if (tc_reply(&address, sizeof address) != TC_OK) tc_fail(cannot_answer, "whoever asked is gone");
    return;
  }
  if (tc_inject(destination, "return_result", &address, sizeof address) != TC_OK)
    tc_fail(cannot_answer, "return_result cannot be sent to the destination");
}

void chaser_main(void *payload, size_t payload_size, void *target_args) {
  (void)target_args;
  struct chase *chase = payload;
  if (payload_size != sizeof *chase) {
    tc_fail(bad_payload, "a chase is 16 bytes: address, depth, destination");
    return;
  }
  size_t bytes = 0;
  const uint64_t *shard = tc_data(CHASE_TABLE, &bytes);
  const uint64_t entries = bytes / sizeof *shard;
  if (shard == NULL || entries == 0) {
    tc_fail(no_table, "this node exposes no " CHASE_TABLE);
    return;
  }
  const uint64_t first = tc_id() * entries;
  uint64_t address = chase->address;  // in registers: the payload could be what `shard` points to
  uint32_t depth = chase->depth;
  for (; depth > 0; --depth) {
    const uint64_t offset = address - first;  // huge for addresses below ours
    if (offset >= entries) break;
    address = shard[offset];
  }
  if (depth == 0) {
    finish(address, chase->destination);
    return;
  }
  chase->address = address;
  chase->depth = depth;
  const uint64_t owner = address / entries;
  const tc_status_t sent = owner <= UINT32_MAX ? tc_forward((uint32_t)owner, chase, sizeof *chase) : TC_ERR_NOT_FOUND;
  if (sent == TC_ERR_NOT_FOUND)
    tc_fail(no_such_address, "the address lies behind the table's end");
  else if (sent != TC_OK)
    tc_fail(cannot_travel, "the server of the next entry cannot be reached");
}
