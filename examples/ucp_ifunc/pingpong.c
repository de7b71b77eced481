// SPDX-License-Identifier: Apache-2.0
// The ping-pong of the 2021 paper's evaluation (section 4.1): each process sends a message, flushes, and waits for the
// other's, which counts. One slot each, used by every message.
//
//     UCX_IFUNC_LIB_DIR=build/release/ifuncs pingpong [PAYLOAD [ROUNDS [own]]]     own: slots in memory of our own
#include "peer.h"

int main(int argc, char **argv) {
  size_t payload = argc > 1 ? strtoul(argv[1], NULL, 10) : 1;
  const uint64_t rounds = argc > 2 ? strtoul(argv[2], NULL, 10) : 10000;
  const int own = argc > 3 && strcmp(argv[3], "own") == 0;
  int fd;
  const int child = split(&fd);

  struct local me;
  struct remote other;
  local_open(&me, payload + 16384, !own);
  remote_open(&other, &me, fd);

  ucp_ifunc_reg_param_t param = {.name = "count", .pure = 0, .llvm_bc = 1};
  ucp_ifunc_h ifunc;
  ucp_ifunc_msg_t msg;
  CHECK(ucp_register_ifunc(me.context, param, &ifunc));
  CHECK(ucp_ifunc_msg_create(ifunc, &payload, sizeof payload, &msg));

  uint64_t count = 0;
  const double begin = seconds();
  for (uint64_t i = 1; i <= rounds; ++i) {
    if (child) poll_until(&me, me.memory, me.size, &count, &count, i);
    const ucs_status_t status = ucp_ifunc_send_nbix(other.ep, msg, other.memory, other.rkey);
    if (status == UCS_INPROGRESS)
      flush(&me, &other);
    else
      CHECK(status);
    if (!child) poll_until(&me, me.memory, me.size, &count, &count, i);
  }
  const double spent = seconds() - begin;
  if (!child)
    printf("%lu rounds of %zu bytes, %.3f us one way\n", (unsigned long)rounds, payload,
           spent / (double)rounds / 2 * 1e6);

  ucp_ifunc_msg_free(msg);
  ucp_deregister_ifunc(me.context, ifunc);
  remote_close(&other, &me, fd);
  local_close(&me);
  return join(child);
}
