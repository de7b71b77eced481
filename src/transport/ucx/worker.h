// SPDX-License-Identifier: Apache-2.0
//
// The objects of UCX that a node uses, each closed in the right order: its worker, memory for puts, and endpoints.
//
// Thread: the node's.
#pragma once

#include <ucp/api/ucp.h>

#include <memory>
#include <string>
#include <vector>

#include "base/bytes.h"

namespace tc::transport {

// One UCX context with one worker, for the thread that drives the node. Closed in the right order.
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

// Our memory for one-sided puts, which a peer writes to. UCX allocates it, so that processes of this machine can map it.
// Zeroed, page-aligned.
class OwnMemory {
 public:
  static Result<std::unique_ptr<OwnMemory>> allocate(ucp_context_h context, size_t bytes);
  ~OwnMemory();
  OwnMemory(const OwnMemory&) = delete;
  OwnMemory& operator=(const OwnMemory&) = delete;

  void* address() const noexcept { return address_; }
  // What a peer needs to reach it.
  Result<Bytes> packed_key() const;

 private:
  OwnMemory(ucp_context_h context, ucp_mem_h handle, void* address)
      : context_(context), handle_(handle), address_(address) {}
  ucp_context_h context_;
  ucp_mem_h handle_;
  void* address_;
};

// A key to a peer's memory. Must outlive the operations that use it.
class RemoteKey {
 public:
  // `packed` came from the peer. UCX does not check it, so call this only if the peer has the same version of UCX.
  static Result<std::unique_ptr<RemoteKey>> unpack(ucp_ep_h endpoint, ByteView packed);
  ~RemoteKey();
  RemoteKey(const RemoteKey&) = delete;
  RemoteKey& operator=(const RemoteKey&) = delete;

  ucp_rkey_h get() const noexcept { return key_; }

 private:
  explicit RemoteKey(ucp_rkey_h key) : key_(key) {}
  ucp_rkey_h key_;
};

// A UCX endpoint to a peer's worker, for one connection.
//
// UCX pairs the endpoints of two workers by the order of their creation, so two of them may be paired crosswise. When one is
// closed, the one it is paired with loses what it sends: longer messages and puts without a word. So the endpoints to a worker
// are closed together, when no connection to it is left (UcxFabric::endpoint_to()) and none is being made.
//
// Thread: the node's. The callback from UCX only records the failure.
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
