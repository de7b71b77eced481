/* SPDX-License-Identifier: Apache-2.0 */
/* The 2022 form, each call of it, as a program of then has them. It includes UCX's header alone. */
#include "peer.h"

static void source(struct local *me, struct remote *other, char *name) {
  char text[] = "sum of these bytes";
  ucp_ifunc_reg_param_t param = {.name = name, .pure = 1, .llvm_bc = 1};
  ucp_ifunc_h ifunc;
  ucp_ifunc_msg_t msg;
  void *payload;
  CHECK(ucp_register_ifunc(me->context, param, &ifunc));
  CHECK(ucp_ifunc_msg_create(ifunc, text, sizeof text, &msg));
  CHECK(ucp_ifunc_msg_get_payload_ptr(&msg, &payload, NULL));
  if (msg.ifunc_h != ifunc || msg.frame == NULL || msg.frame_size <= sizeof text || memcmp(payload, text, 4) != 0)
    exit(1);
  const ucs_status_t status = ucp_ifunc_send_nbix(other->ep, msg, other->memory, other->rkey);
  if (status != UCS_INPROGRESS) CHECK(status);
  flush(me, other);
  ucp_ifunc_msg_free(msg);
  ucp_deregister_ifunc(me->context, ifunc);
}

/* The ifunc's bitcode is in memory, when there is a file of it. */
static void source_of_memory(struct local *me, struct remote *other, const char *path, char *triple) {
  static char bitcode[1 << 16];
  FILE *file = fopen(path, "rb");
  if (file == NULL) exit(1);
  ucp_llvm_bc_t bc = {.triple = triple, .bc = bitcode, .size = (uint32_t)fread(bitcode, 1, sizeof bitcode, file)};
  char *deps[] = {(char *)"c"};
  ucp_ifunc_reg_param_t param = {.name = (char *)"bytes", .pure = 0, .llvm_bc = 1};
  ucp_ifunc_h ifunc;
  fclose(file);
  CHECK(ucp_register_ifunc_im(me->context, param, &bc, 1, deps, 1, &ifunc));
  source(me, other, (char *)"bytes"); /* which is registered now */
  ucp_deregister_ifunc(me->context, ifunc);
}

int main(int argc, char **argv) {
  int fd;
  const int child = split(&fd);
  struct local me;
  struct remote other;
  int wrong = 0;
  local_open(&me, 1 << 16, 0);
  remote_open(&other, &me, fd);
  if (child) {
    uint64_t sum = 0;
    ucs_status_t status;
    do status = ucp_poll_ifunc(me.context, me.memory, me.size, &sum, me.worker);
    while (status == UCS_ERR_NO_MESSAGE);
    CHECK(status);
    wrong = sum != 1738;
    printf("the bytes' sum is %lu\n", (unsigned long)sum);
    fflush(stdout);
  } else if (argc > 2) {
    source_of_memory(&me, &other, argv[1], argv[2]);
  } else {
    source(&me, &other, (char *)"bytes");
  }
  remote_close(&other, &me, fd);
  local_close(&me);
  return child ? wrong : join(child);
}
