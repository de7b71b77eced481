// SPDX-License-Identifier: Apache-2.0
//
// One UCX worker, and the connections that it serves.
//
// Thread: the node's.
#pragma once

#include <list>
#include <map>
#include <vector>

#include "transport/fabric.h"
#include "transport/ucx/connection.h"
#include "transport/ucx/worker.h"

namespace tc::transport {

class UcxFabric final : public Fabric {
 public:
  static Result<std::unique_ptr<UcxFabric>> create(const FabricOptions& options, Hub& hub);
  ~UcxFabric() override;

  Result<std::unique_ptr<SocketConnection>> connect(Fd socket, std::string address, std::vector<SocketAddress> others,
                                                    ByteView hello) override;
  Result<std::unique_ptr<SocketConnection>> accept(Fd& socket, const Origin& origin, const Greeting& greeting) override;
  unsigned progress() noexcept override;
  bool arm() noexcept override;
  int event_descriptor() const noexcept override { return worker_->event_fd(); }
  uint64_t next_time() noexcept override;

  // For connections.
  const FabricOptions& options() const noexcept { return options_; }
  Hub& hub() const noexcept { return hub_; }
  UcxWorker& worker() const noexcept { return *worker_; }
  // Gives the connection its token. TC_ERR_LIMIT.
  Result<uint64_t> enlist(UcxConnection& connection);
  void forget(UcxConnection& connection) noexcept;
  Result<std::shared_ptr<UcxEndpoint>> endpoint_to(const Bytes& worker_address);
  void note(UcxConnection& connection) noexcept;
  void note_time() noexcept { next_check_ns_ = 1; }
  // Keeps an endpoint until the peer has all that was sent by it, and so ends its socket.
  void linger(Fd socket, std::shared_ptr<UcxEndpoint> endpoint) noexcept;

 private:
  UcxFabric(const FabricOptions& options, Hub& hub) : options_(options), hub_(hub) {}
  Status start();
  UcxConnection* find(uint64_t token) const noexcept;
  void deliver_noted() noexcept;
  void check(uint64_t now) noexcept;
  static ucs_status_t on_batch(void* self, const void* header, size_t header_size, void* data, size_t size,
                               const ucp_am_recv_param_t* param) noexcept;
  static ucs_status_t on_signal(void* self, const void* header, size_t header_size, void* data, size_t size,
                                const ucp_am_recv_param_t* param) noexcept;

  struct Lingering {
    Fd socket;
    std::shared_ptr<UcxEndpoint> endpoint;
    uint64_t give_up_at_ns;
  };

  const FabricOptions options_;
  Hub& hub_;
  std::unique_ptr<UcxWorker> worker_;
  unsigned failures_ = 0, failures_seen_ = 0;  // of endpoints
  uint32_t calls_ = 0;
  uint64_t next_check_ns_ = 0;  // when connections have something to see to; 0: never
  std::map<std::string, std::weak_ptr<UcxEndpoint>, std::less<>> endpoints_;  // by worker address
  std::vector<UcxConnection*> connections_;                                   // by the token's low 16 bits; null: free
  std::vector<UcxConnection*> noted_;
  std::list<Lingering> lingering_;
};

}  // namespace tc::transport
