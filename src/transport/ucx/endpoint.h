// SPDX-License-Identifier: Apache-2.0
//
// A UCX endpoint to a peer's worker, shared by all connections to that worker: UCX pairs endpoints of two workers
// by the order of their creation, so two of them between the same workers could be paired crosswise, and closing
// one would tear down the wrong connection.
//
// Thread: the node's. Callbacks only take notes here.
#pragma once

#include <ucp/api/ucp.h>

#include <memory>
#include <vector>

#include "base/bytes.h"
#include "transport/ucx/memory.h"

namespace tc::transport {

// One active message, eager. Null: done, the memory is free again. A request: `done` will be called with `user`, and
// header and data must stay until then. An error status: it was not sent.
inline ucs_status_ptr_t send_eager(ucp_ep_h endpoint, unsigned id, const void* header, size_t header_size,
                                   const void* data, size_t size, ucp_send_nbx_callback_t done, void* user) noexcept {
  ucp_request_param_t params;  // what its mask leaves out is not read
  params.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS | UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  params.flags = UCP_AM_SEND_FLAG_EAGER;
  params.cb.send = done;
  params.user_data = user;
  return ucp_am_send_nbx(endpoint, id, header, header_size, data, size, &params);
}

class UcxEndpoint {
 public:
  // `failures` counts endpoints that broke, so that their owner knows when to look.
  static Result<std::shared_ptr<UcxEndpoint>> open(ucp_worker_h worker, ByteView address, unsigned& failures);
  ~UcxEndpoint();
  UcxEndpoint(const UcxEndpoint&) = delete;
  UcxEndpoint& operator=(const UcxEndpoint&) = delete;

  ucp_ep_h get() const noexcept { return endpoint_; }
  bool failed() const noexcept { return failure_ != UCS_OK; }
  ucs_status_t failure() const noexcept { return failure_; }

  // send_eager(), unless the endpoint has failed: then its failure.
  ucs_status_ptr_t send(unsigned id, const void* header, size_t header_size, const void* data, size_t size,
                        ucp_send_nbx_callback_t done, void* user) noexcept;

  // Memory of ours that the peer may still write to while this endpoint lives.
  void keep(std::unique_ptr<OwnMemory> memory) { kept_.push_back(std::move(memory)); }
  // A key that operations on their way still use.
  void keep(std::unique_ptr<RemoteKey> key) { kept_keys_.push_back(std::move(key)); }

 private:
  explicit UcxEndpoint(unsigned& failures) : failures_(failures) {}
  static void on_error(void* self, ucp_ep_h endpoint, ucs_status_t status) noexcept;

  ucp_ep_h endpoint_ = nullptr;
  ucp_worker_h worker_ = nullptr;
  ucs_status_t failure_ = UCS_OK;
  unsigned& failures_;
  std::vector<std::unique_ptr<OwnMemory>> kept_;
  std::vector<std::unique_ptr<RemoteKey>> kept_keys_;
};

}  // namespace tc::transport
