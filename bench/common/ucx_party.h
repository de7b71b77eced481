// SPDX-License-Identifier: Apache-2.0
//
// The UCX program that our nodes are compared with: a context and a worker, endpoints, Active Messages, and memory for
// GETs and puts. It waits in the same way as a node (Node::wait), so that neither side of the comparison polls better
// than the other. Thread: one for each party.
#pragma once

#include <ucp/api/ucp.h>

#include <istream>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "transport/wait_policy.h"

namespace tc::bench {

class UcxParty {
 public:
  // What a peer's death does. To have it reported costs UCX its faster protocols for large messages over TCP; where it
  // is not, UCX ends this process over it.
  enum class PeerFailure : uint8_t { reported, fatal };

  // `tls`: UCX_TLS for this context alone. `features`: UCP_FEATURE_AM, _RMA; wait() needs _WAKEUP as well.
  static Result<std::unique_ptr<UcxParty>> create(const std::string& tls, uint64_t features,
                                                  PeerFailure peer_failure = PeerFailure::reported);
  ~UcxParty();
  UcxParty(const UcxParty&) = delete;
  UcxParty& operator=(const UcxParty&) = delete;

  ucp_context_h context() const noexcept { return context_; }
  ucp_worker_h worker() const noexcept { return worker_; }
  // Hexadecimal, for other processes.
  Result<std::string> address() const;
  Result<ucp_ep_h> connect(const std::string& address);
  // From now on Active Messages with this id call `callback` with `arg`.
  Status handle(unsigned id, ucp_am_recv_callback_t callback, void* arg);
  // Progresses until a request is done, and frees it; `what` is for error messages. TC_ERR_TIMEOUT after a minute.
  Status finish(ucs_status_ptr_t request, const char* what) {
    return request == nullptr ? Status{} : finish_pending(request, what);
  }
  // Waits until all that was sent over an endpoint is there.
  Status flush(ucp_ep_h endpoint);
  unsigned progress() noexcept { return ucp_worker_progress(worker_); }

  // Progresses until something happened, wake() was called, or the deadline passed; polls, yields and blocks by the
  // policy that nodes have (transport/wait_policy.h).
  void wait(Deadline deadline);
  void wake() noexcept;  // any thread

  // TC_ERR_DISCONNECTED once an endpoint failed.
  Status status() const;

 private:
  UcxParty(bool by_sockets_alone, PeerFailure peer_failure)
      : by_sockets_alone_(by_sockets_alone), peer_failure_(peer_failure) {}
  Status start(const std::string& tls, uint64_t features);
  Status finish_pending(ucs_status_ptr_t request, const char* what);
  bool found_something() noexcept;
  static void on_error(void* self, ucp_ep_h endpoint, ucs_status_t status);

  const bool by_sockets_alone_;
  transport::Core core_;
  const PeerFailure peer_failure_;
  ucp_context_h context_ = nullptr;
  ucp_worker_h worker_ = nullptr;
  int event_fd_ = -1;
  int wake_fd_ = -1;
  bool arms_ = true;  // UCX, before the next sleep: over sockets alone only after one that brought nothing
  std::vector<ucp_ep_h> endpoints_;
  ucs_status_t failure_ = UCS_OK;
};

// Memory that peers reach by GETs and puts. It goes before its party does.
class UcxMemory {
 public:
  // Without `own`, memory of this program, UCX allocates it: peers then reach it as directly as the transport can.
  static Result<UcxMemory> map(UcxParty& party, size_t bytes, void* own = nullptr);
  UcxMemory(UcxMemory&& other) noexcept
      : party_(other.party_), mapped_(std::exchange(other.mapped_, nullptr)), bytes_(other.bytes_) {}
  ~UcxMemory() {
    if (mapped_ != nullptr) ucp_mem_unmap(party_->context(), mapped_);
  }
  UcxMemory& operator=(const UcxMemory&) = delete;
  std::span<std::byte> bytes() const noexcept { return bytes_; }
  // Three words: the worker's address, the memory's key, its address.
  Result<std::string> contact() const;

 private:
  explicit UcxMemory(UcxParty& party) noexcept : party_(&party) {}
  UcxParty* party_;
  ucp_mem_h mapped_ = nullptr;
  std::span<std::byte> bytes_;
};

// What a contact says.
struct GetContact {
  std::string worker, key;
  uint64_t address = 0;
};
std::istream& operator>>(std::istream& words, GetContact& into);

// A server's memory as a client reaches it. Gone before the client's party is.
class RemoteMemory {
 public:
  static Result<RemoteMemory> reach(UcxParty& party, const GetContact& contact);
  RemoteMemory(RemoteMemory&& other) noexcept
      : endpoint_(other.endpoint_), key_(std::exchange(other.key_, nullptr)), address_(other.address_) {}
  ~RemoteMemory() {
    if (key_ != nullptr) ucp_rkey_destroy(key_);
  }
  RemoteMemory& operator=(const RemoteMemory&) = delete;

  ucp_ep_h endpoint() const noexcept { return endpoint_; }
  ucp_rkey_h key() const noexcept { return key_; }
  uint64_t address() const noexcept { return address_; }

 private:
  RemoteMemory(ucp_ep_h endpoint, ucp_rkey_h key, uint64_t address) noexcept
      : endpoint_(endpoint), key_(key), address_(address) {}
  ucp_ep_h endpoint_;
  ucp_rkey_h key_;
  uint64_t address_;
};

Status check_ucx(ucs_status_t status, const char* what);

}  // namespace tc::bench
