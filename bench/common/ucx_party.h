// SPDX-License-Identifier: Apache-2.0
//
// A UCX worker of its own with what the modes without us need: endpoints, and waiting in the same way as a node waits
// (Node::wait), so that neither side of the comparison polls better than the other.
#pragma once

#include <ucp/api/ucp.h>

#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"

namespace tc::bench {

class UcxParty {
 public:
  // What a peer's death does. To have it reported costs UCX its faster protocols for large messages over TCP; where it
  // is not, UCX ends this process over it.
  enum class PeerFailure : uint8_t { reported, fatal };

  // `tls`: UCX_TLS for this context alone. `features`: UCP_FEATURE_AM or _RMA; waking up is added.
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
  bool found_something() noexcept;
  static void on_error(void* self, ucp_ep_h endpoint, ucs_status_t status);

  const bool by_sockets_alone_;
  const PeerFailure peer_failure_;
  ucp_context_h context_ = nullptr;
  ucp_worker_h worker_ = nullptr;
  int event_fd_ = -1;
  int wake_fd_ = -1;
  bool arms_ = true;  // UCX, before the next sleep: over sockets alone only after one that brought nothing
  std::vector<ucp_ep_h> endpoints_;
  ucs_status_t failure_ = UCS_OK;
};

std::string to_hex(const void* bytes, size_t size);
std::vector<unsigned char> from_hex(const std::string& text);
Status check_ucx(ucs_status_t status, const char* what);

}  // namespace tc::bench
