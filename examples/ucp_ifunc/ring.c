// SPDX-License-Identifier: Apache-2.0
// The throughput benchmark of the 2021 paper (section 4.1): the source fills a ring of slots with messages, flushes,
// and waits until the target says that it has consumed them all, before it begins the next round.
//
//     UCX_IFUNC_LIB_DIR=build/release/ifuncs ring [PAYLOAD [ROUNDS [SLOTS [own]]]]     own: the ring in memory of our own
#include "peer.h"

int main(int argc, char **argv) {
  size_t payload = argc > 1 ? strtoul(argv[1], NULL, 10) : 1;
  const uint64_t rounds = argc > 2 ? strtoul(argv[2], NULL, 10) : 100;
  const uint64_t slots = argc > 3 ? strtoul(argv[3], NULL, 10) : 64;
  const int own = argc > 4 && strcmp(argv[4], "own") == 0;
  int fd;
  const int child = split(&fd);

  const size_t slot = (payload + 8192) / 64 * 64; /* the first frame holds the code */
  struct local me;
  struct remote other;
  local_open(&me, slots * slot, !own);
  remote_open(&other, &me, fd);

  if (child) { /* the target */
    uint64_t count = 0;
    for (uint64_t i = 0; i < rounds * slots; ++i) {
      poll_until(&me, me.memory + i % slots * slot, slot, &count, &count, i + 1);
      if ((i + 1) % slots == 0) tell(fd, &count, sizeof count);
    }
  } else { /* the source */
    ucp_ifunc_reg_param_t param = {.name = "count", .pure = 0, .llvm_bc = 1};
    ucp_ifunc_h ifunc;
    ucp_ifunc_msg_t msg;
    uint64_t count = 0;
    CHECK(ucp_register_ifunc(me.context, param, &ifunc));
    CHECK(ucp_ifunc_msg_create(ifunc, &payload, sizeof payload, &msg));
    const double begin = seconds();
    for (uint64_t round = 0; round < rounds; ++round) {
      for (uint64_t i = 0; i < slots; ++i) {
        const ucs_status_t status = ucp_ifunc_send_nbix(other.ep, msg, other.memory + i * slot, other.rkey);
        if (status != UCS_INPROGRESS) CHECK(status);
      }
      flush(&me, &other);
      hear(&me, fd, &count, sizeof count);
    }
    const double spent = seconds() - begin;
    printf("%lu messages of %zu bytes ran, %.0f a second\n", (unsigned long)count, payload, (double)count / spent);
    ucp_ifunc_msg_free(msg);
    ucp_deregister_ifunc(me.context, ifunc);
  }
  remote_close(&other, &me, fd);
  local_close(&me);
  return join(child);
}
