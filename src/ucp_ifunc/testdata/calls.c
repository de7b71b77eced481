// SPDX-License-Identifier: Apache-2.0
// Calls every function of the API from injected code; the target args say which of them failed first.
#include <threechains/ucp_ifunc.h>

struct calls {
  ucp_context_h context;
  ucp_worker_h worker;
  ucp_ep_h ep;
  uint64_t slot;
  ucp_rkey_h rkey;
  int failed_in; /* a line of this file; 0: none */
  int done;
};

#define EXPECT(condition)          \
  do {                             \
    if (!(condition)) {            \
      calls->failed_in = __LINE__; \
      return;                      \
    }                              \
  } while (0)

void calls_main(void *payload, size_t payload_size, void *target_args) {
  static char empty[4096] __attribute__((aligned(64)));
  struct calls *calls = target_args;
  ucp_ifunc_reg_param_t param = {(char *)"calls", 0, 1}, nameless = {0};
  ucp_ifunc_h self;
  ucp_ifunc_msg_t msg;
  void *bytes;
  size_t size;
  EXPECT(ucp_register_ifunc(calls->context, param, &self) == UCS_OK);
  EXPECT(ucp_ifunc_msg_create(self, payload, payload_size, &msg) == UCS_OK);
  EXPECT(ucp_ifunc_msg_get_payload_ptr(&msg, &bytes, &size) == UCS_OK && size == payload_size);
  EXPECT(ucp_ifunc_send_nbix(calls->ep, msg, calls->slot, calls->rkey) == UCS_OK);
  ucp_ifunc_msg_free(msg);
  ucp_ifunc_forget(calls->ep);
  ucp_deregister_ifunc(calls->context, self);
  EXPECT(ucp_poll_ifunc(calls->context, empty, sizeof empty, NULL, NULL) == UCS_ERR_NO_MESSAGE);
  EXPECT(ucp_register_ifunc_im(calls->context, nameless, NULL, 0, NULL, 0, &self) == UCS_ERR_INVALID_PARAM);
  EXPECT(ucp_ifunc_error()[0] != 0);
  EXPECT(ucp_ifunc_am_register(calls->worker, calls->context, 21, NULL) == UCS_OK);
  calls->done = 1;
}
