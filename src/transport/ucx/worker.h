// SPDX-License-Identifier: Apache-2.0
//
// One UCX context with one worker, for the thread that drives the node. Closed in the right order.
#pragma once

#include <ucp/api/ucp.h>

#include <memory>
#include <string>

#include "base/bytes.h"

namespace tc::transport {

class UcxWorker {
 public:
  // `tls` and `devices` in the syntax of UCX_TLS and UCX_NET_DEVICES; empty: from the environment. TC_ERR_DENIED when
  // UCX would listen on every network interface. `rma`: peers may put into memory that we map. Only for puts, because
  // UCX emulates them where the network has none, and then writes to any address that the peer names.
  static Result<std::unique_ptr<UcxWorker>> open(const std::string& tls, const std::string& devices, bool rma);
  ~UcxWorker();
  UcxWorker(const UcxWorker&) = delete;
  UcxWorker& operator=(const UcxWorker&) = delete;

  ucp_context_h context() const noexcept { return context_; }
  ucp_worker_h get() const noexcept { return worker_; }
  // Readable when an armed worker has something to do.
  int event_fd() const noexcept { return event_fd_; }
  // UCX was restricted to TCP.
  bool tcp_alone() const noexcept { return tcp_alone_; }
  // The address that peers need to reach us. It does not change.
  const Bytes& address() const noexcept { return address_; }

  static std::string version();

 private:
  UcxWorker() = default;
  Status start(const std::string& tls, const std::string& devices, bool rma);

  ucp_context_h context_ = nullptr;
  ucp_worker_h worker_ = nullptr;
  int event_fd_ = -1;
  bool tcp_alone_ = false;
  Bytes address_;
};

// "UCX says: Destination is unreachable", for messages.
std::string ucx_message(ucs_status_t status);

}  // namespace tc::transport
