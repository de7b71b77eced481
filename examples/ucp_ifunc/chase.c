// SPDX-License-Identifier: Apache-2.0
// A pointer chase that the ifunc itself drives (2022 paper: X-RDMA): it follows the table as long as it is at the node
// that holds the next entry, then sends itself on to the one that does. Only the node that begins has its file.
#include "chase.h"

// UCX's API, called from injected code. (The compiler put <threechains/ucp_ifunc.h> in front.)
static ucs_status_t send_on(struct chase_node *node, uint32_t to, struct chase *chase) {
  ucp_ifunc_reg_param_t param = {(char *)"chase", 0, 1};
  ucp_ifunc_h self;
  ucp_ifunc_msg_t msg;
  ucs_status_t status = ucp_register_ifunc(node->context, param, &self);
  if (status != UCS_OK) return status;
  status = ucp_ifunc_msg_create(self, chase, sizeof *chase, &msg);
  if (status == UCS_OK) {
    status = ucp_ifunc_send_nbix(node->ep[to], msg, node->slot[to], node->rkey[to]);
    if (status == UCS_INPROGRESS) {
      const ucp_request_param_t nothing = {0};
      ucs_status_ptr_t request = ucp_ep_flush_nbx(node->ep[to], &nothing);
      while (UCS_PTR_IS_PTR(request) && ucp_request_check_status(request) == UCS_INPROGRESS)
        ucp_worker_progress(node->worker);
      status = UCS_PTR_IS_PTR(request) ? ucp_request_check_status(request) : UCS_PTR_STATUS(request);
      if (UCS_PTR_IS_PTR(request)) ucp_request_free(request);
    }
    ucp_ifunc_msg_free(msg);
  }
  return status;  // the registration stays: the next hop needs it again
}

void chase_main(void *payload, size_t payload_size, void *target_args) {
  struct chase_node *node = target_args;
  struct chase chase = *(struct chase *)payload;
  (void)payload_size;
  while (chase.left != 0 && chase.entry % chase_nodes == node->id) {
    chase.entry = node->shard[chase.entry / chase_nodes];
    --chase.left;
    ++node->hops;
  }
  const uint32_t to = chase.left != 0 ? (uint32_t)(chase.entry % chase_nodes) : chase.origin;
  if (to == node->id) {
    node->answer = chase.entry;
    ++node->finished;
  } else if (send_on(node, to, &chase) != UCS_OK) {
    __builtin_trap();
  }
}
