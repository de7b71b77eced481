// SPDX-License-Identifier: Apache-2.0
//
// A UCX endpoint to a peer's worker, for one connection.
//
// UCX pairs the endpoints of two workers by the order of their creation, so two of them may be paired crosswise. When one is
// closed, the one it is paired with loses what it sends: longer messages and puts without a word. So the endpoints to a worker
// are closed together, when no connection to it is left (UcxFabric::endpoint_to()) and none is being made.
//
// Thread: the node's. The callback from UCX only records the failure.
#pragma once

#include <ucp/api/ucp.h>

#include <memory>
#include <vector>

#include "base/bytes.h"
#include "transport/ucx/memory.h"

namespace tc::transport {

class UcxEndpoint {
 public:
  // `failures` counts endpoints that have failed, so that the fabric knows when to check.
  static Result<std::unique_ptr<UcxEndpoint>> open(ucp_worker_h worker, ByteView address, unsigned& failures);
  ~UcxEndpoint();
  UcxEndpoint(const UcxEndpoint&) = delete;
  UcxEndpoint& operator=(const UcxEndpoint&) = delete;

  ucp_ep_h get() const noexcept { return endpoint_; }
  // Is the connection complete, so that it may be closed? UCX 1.13 aborts the process of a peer that is still
  // connecting.
  bool is_settled() const noexcept;
  bool failed() const noexcept { return failure_ != UCS_OK; }
  ucs_status_t failure() const noexcept { return failure_; }

  // Keeps memory that the peer may still write to, and a key that operations in flight still use.
  void keep(std::unique_ptr<OwnMemory> memory, std::unique_ptr<RemoteKey> key) {
    kept_.emplace_back(std::move(memory), std::move(key));
  }

 private:
  explicit UcxEndpoint(unsigned& failures) : failures_(failures) {}
  static void on_error(void* self, ucp_ep_h endpoint, ucs_status_t status) noexcept;

  ucp_ep_h endpoint_ = nullptr;
  ucs_status_ptr_t settling_ = nullptr;
  ucp_worker_h worker_ = nullptr;
  ucs_status_t failure_ = UCS_OK;
  unsigned& failures_;
  std::vector<std::pair<std::unique_ptr<OwnMemory>, std::unique_ptr<RemoteKey>>> kept_;
};

}  // namespace tc::transport
