// SPDX-License-Identifier: Apache-2.0
// Three processes, each with a third of a table of pointers and one slot for each of the others. Node 0 sends `chase`
// off and waits; the ifunc finds its own way (chase.c).
//
//     UCX_IFUNC_LIB_DIR=build/release/ifuncs chase_nodes [CHASES [DEPTH]]
#include "chase.h"
#include "peer.h"

static uint64_t next_of(uint64_t entry) { return (entry * 1229 + 17) % chase_entries; }

// Sockets between each two of the nodes; which of them we are.
static int split_in_three(int fd[chase_nodes]) {
  int pair[chase_nodes][chase_nodes][2];
  for (int a = 0; a < chase_nodes; ++a)
    for (int b = a + 1; b < chase_nodes; ++b)
      if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair[a][b]) != 0) exit(1);
  int id = 0;
  while (id + 1 < chase_nodes && fork() == 0) ++id;
  for (int a = 0; a < chase_nodes; ++a)
    for (int b = a + 1; b < chase_nodes; ++b)
      for (int end = 0; end < 2; ++end)
        if ((end == 0 ? a : b) == id)
          fd[end == 0 ? b : a] = pair[a][b][end];
        else
          close(pair[a][b][end]);
  return id;
}

// One look at the slot of each other node.
static void poll_all(struct local *me, struct chase_node *node) {
  for (int peer = 0; peer < chase_nodes; ++peer) {
    if (peer == (int)node->id) continue;
    const ucs_status_t status =
        ucp_poll_ifunc(me->context, me->memory + peer * chase_slot, chase_slot, node, me->worker);
    if (status != UCS_ERR_NO_MESSAGE) CHECK(status);
  }
}

static void run_chase(struct local *me, struct chase_node *node, uint64_t depth, uint64_t number) {
  struct chase chase = {.entry = number * 31 % chase_entries, .left = depth, .origin = 0};
  uint64_t expected = chase.entry;
  for (uint64_t i = 0; i < depth; ++i) expected = next_of(expected);

  ucp_ifunc_reg_param_t param = {.name = "chase", .pure = 0, .llvm_bc = 1};
  ucp_ifunc_h ifunc;
  ucp_ifunc_msg_t msg;
  const int first = (int)(chase.entry % chase_nodes) == 0 ? 1 : (int)(chase.entry % chase_nodes);
  CHECK(ucp_register_ifunc(me->context, param, &ifunc));
  CHECK(ucp_ifunc_msg_create(ifunc, &chase, sizeof chase, &msg));
  const ucs_status_t status = ucp_ifunc_send_nbix(node->ep[first], msg, node->slot[first], node->rkey[first]);
  if (status != UCS_INPROGRESS) CHECK(status);
  const double begin = seconds();
  for (unsigned polls = 1; node->finished <= number; ++polls) {
    poll_all(me, node);
    if (polls % 100 == 0) wait_a_little(begin, "a chase to come home");
  }
  ucp_ifunc_msg_free(msg); /* it came home: it was sent */
  ucp_deregister_ifunc(me->context, ifunc);
  if (node->answer != expected) {
    fprintf(stderr, "chase %lu ended at %lu when it should at %lu\n", (unsigned long)number,
            (unsigned long)node->answer, (unsigned long)expected);
    exit(1);
  }
}

int main(int argc, char **argv) {
  const uint64_t chases = argc > 1 ? strtoul(argv[1], NULL, 10) : 20;
  const uint64_t depth = argc > 2 ? strtoul(argv[2], NULL, 10) : 100;
  int fd[chase_nodes];
  const int id = split_in_three(fd);
  if (id != 0) unsetenv("UCX_IFUNC_LIB_DIR"); /* the others get the code, and pass it on */

  struct local me;
  struct remote other[chase_nodes];
  uint64_t shard[chase_entries / chase_nodes + 1];
  for (uint64_t entry = 0; entry < chase_entries; ++entry)
    if ((int)(entry % chase_nodes) == id) shard[entry / chase_nodes] = next_of(entry);
  local_open(&me, chase_nodes * chase_slot, 1);
  struct chase_node node = {.context = me.context, .worker = me.worker, .id = (uint32_t)id, .shard = shard};
  for (int peer = 0; peer < chase_nodes; ++peer) {
    if (peer == id) continue;
    remote_open(&other[peer], &me, fd[peer]);
    node.ep[peer] = other[peer].ep;
    node.rkey[peer] = other[peer].rkey;
    node.slot[peer] = other[peer].memory + (uint64_t)(id * chase_slot);
  }

  char done = 0;
  if (id == 0) {
    for (uint64_t i = 0; i < chases; ++i) run_chase(&me, &node, depth, i);
    for (int peer = 1; peer < chase_nodes; ++peer) tell(fd[peer], &done, 1);
    printf("%lu chases of %lu steps, %lu of them at node 0\n", (unsigned long)chases, (unsigned long)depth,
           (unsigned long)node.hops);
  } else {
    ssize_t heard = -1;
    for (unsigned polls = 1; heard < 0; ++polls) {
      poll_all(&me, &node);
      if (polls % 100 != 0) continue;
      sched_yield();
      heard = recv(fd[0], &done, 1, MSG_DONTWAIT);
    }
    if (heard == 0) exit(1); /* node 0 ended */
  }
  for (int peer = 0; peer < chase_nodes; ++peer)
    if (peer != id) remote_close(&other[peer], &me, fd[peer]);
  local_close(&me);
  return id + 1 < chase_nodes ? join(0) : 0;
}
