// SPDX-License-Identifier: Apache-2.0
// The send-receive way that the 2021 paper announces (section 5.1): no slot, no rkey, no polling call. The target
// progresses its worker as it does anyway, and ifuncs run.
//
//     UCX_IFUNC_LIB_DIR=build/release/ifuncs without_slots [PAYLOAD [MESSAGES]]
#include "peer.h"

enum { am_id = 5 };

int main(int argc, char **argv) {
  size_t payload = argc > 1 ? strtoul(argv[1], NULL, 10) : 1;
  const uint64_t messages = argc > 2 ? strtoul(argv[2], NULL, 10) : 1000;
  int fd;
  const int child = split(&fd);
  struct local me;
  struct remote other;
  uint64_t count = 0;
  local_open(&me, 4096, 1);
  CHECK(ucp_ifunc_am_register(me.worker, me.context, am_id, &count));
  remote_open(&other, &me, fd);

  if (child) {
    const double begin = seconds();
    while (*(volatile uint64_t *)&count < messages)
      if (ucp_worker_progress(me.worker) == 0) wait_a_little(begin, "messages");
    tell(fd, &count, sizeof count);
  } else {
    ucp_ifunc_reg_param_t param = {.name = "count", .pure = 0, .llvm_bc = 1};
    ucp_ifunc_h ifunc;
    ucp_ifunc_msg_t msg;
    const ucp_request_param_t nothing = {0};
    CHECK(ucp_register_ifunc(me.context, param, &ifunc));
    CHECK(ucp_ifunc_msg_create(ifunc, &payload, sizeof payload, &msg));
    for (uint64_t i = 0; i < messages; ++i) finish(&me, ucp_ifunc_am_send_nbx(other.ep, am_id, msg, &nothing));
    hear(&me, fd, &count, sizeof count);
    printf("%lu messages of %zu bytes ran\n", (unsigned long)count, payload);
    ucp_ifunc_msg_free(msg);
    ucp_deregister_ifunc(me.context, ifunc);
  }
  remote_close(&other, &me, fd);
  local_close(&me);
  return join(child);
}
