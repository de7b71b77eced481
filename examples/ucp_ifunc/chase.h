/* SPDX-License-Identifier: Apache-2.0 */
/* What the chase ifunc and the program that hosts it agree on: a table of pointers, spread over three nodes. */
#ifndef CHASE_H
#define CHASE_H

#include <stdint.h>

enum { chase_nodes = 3, chase_entries = 4096, chase_slot = 16384 };

/* The target args of each node. */
struct chase_node {
  ucp_context_h context;
  ucp_worker_h worker;
  uint32_t id;
  const uint64_t* shard;      /* of the table: entry i is at node i % chase_nodes */
  ucp_ep_h ep[chase_nodes];   /* to the others */
  uint64_t slot[chase_nodes]; /* where in their memory this node's slot is */
  ucp_rkey_h rkey[chase_nodes];
  uint64_t hops;              /* that the chase made here */
  volatile uint64_t finished; /* at the node that began: chases that came home */
  uint64_t answer;
};

/* The payload: where the chase is. */
struct chase {
  uint64_t entry;
  uint64_t left; /* steps */
  uint32_t origin;
  uint32_t status; /* what went wrong on the way */
};

#endif
