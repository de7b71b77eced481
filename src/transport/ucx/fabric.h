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

  // For channels and connections.
  const FabricOptions& options() const noexcept { return options_; }
  Hub& hub() const noexcept { return hub_; }
  UcxWorker& worker() const noexcept { return *worker_; }
  // Of a channel to us, in bytes.
  size_t window() const noexcept { return options_.puts ? options_.ring_bytes : options_.window_bytes; }
  // Gives the channel its token. TC_ERR_LIMIT.
  Result<uint64_t> enlist(UcxChannel& channel);
  void forget(UcxChannel& channel) noexcept;
  Result<std::shared_ptr<UcxEndpoint>> endpoint_to(const Bytes& worker_address);
  // Keeps an endpoint that its last channel leaves until it may be closed.
  void retire(std::shared_ptr<UcxEndpoint> endpoint) noexcept;
  // The channel has news for its owner.
  void note(UcxChannel& channel) noexcept;
  void note_time() noexcept { next_check_ns_ = 1; }
  // Sends what is left, and keeps the channel until the peer has it all and so ends its socket.
  void linger(Fd socket, std::unique_ptr<UcxChannel> channel, Bytes unsent);
  unsigned messages_on_the_way = 0;  // that UCX still reads

 private:
  UcxFabric(const FabricOptions& options, Hub& hub) : options_(options), hub_(hub) {}
  Status start();
  UcxChannel* find(uint64_t token) const noexcept;
  void note_puts() noexcept;
  void deliver_noted() noexcept;
  void check(uint64_t now) noexcept;
  void send_last_words() noexcept;
  template <unsigned Id>
  static ucs_status_t on_message(void* self, const void* header, size_t header_size, void* data, size_t size,
                                 const ucp_am_recv_param_t* param) noexcept;

  struct Lingering {
    Fd socket;
    std::unique_ptr<UcxChannel> channel;
    Bytes unsent;
    size_t sent;
    bool said_all;
    uint64_t give_up_at_ns;
  };

  const FabricOptions options_;
  Hub& hub_;
  std::unique_ptr<UcxWorker> worker_;
  unsigned failures_ = 0, failures_seen_ = 0;  // of endpoints
  uint64_t next_check_ns_ = 0;                 // when connections have something to see to; 0: never
  uint64_t nap_ns_ = 0;                        // until the next look at what is on its way
  unsigned seen_on_the_way_ = 0;               // then
  std::map<std::string, std::weak_ptr<UcxEndpoint>, std::less<>> endpoints_;  // by worker address
  std::vector<UcxChannel*> channels_;                                         // by the token's low 16 bits; null: free
  std::vector<UcxChannel*> noted_;
  std::list<Lingering> lingering_;
  std::vector<std::pair<std::shared_ptr<UcxEndpoint>, uint64_t>> retired_;  // and until when they are kept
};

}  // namespace tc::transport
