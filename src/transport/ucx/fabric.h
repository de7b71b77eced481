// SPDX-License-Identifier: Apache-2.0
//
// One UCX worker, and the connections that it serves.
//
// Thread: the node's.
#pragma once

#include <list>
#include <map>
#include <vector>

#include "transport/closing_sockets.h"
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
  Result<std::unique_ptr<SocketConnection>> accept(SocketStream& stream, const Origin& origin,
                                                   const Greeting& greeting) override;
  unsigned progress() noexcept override;
  bool arm() noexcept override;
  int event_descriptor() const noexcept override { return worker_->event_fd(); }
  uint64_t next_time() noexcept override;
  bool has_unfinished() const noexcept override { return !lingering_.empty(); }

  // For channels and connections.
  const FabricOptions& options() const noexcept { return options_; }
  Hub& hub() const noexcept { return hub_; }
  UcxWorker& worker() const noexcept { return *worker_; }
  // Of a channel to us, in bytes.
  size_t window() const noexcept { return options_.puts ? options_.ring_bytes : options_.window_bytes; }
  // Assigns the channel its token. TC_ERR_LIMIT.
  Result<uint64_t> add(UcxChannel& channel);
  void remove(UcxChannel& channel) noexcept;
  // A new one. It holds all those to the same worker.
  Result<std::shared_ptr<UcxEndpoint>> endpoint_to(const Bytes& worker_address);
  // Keeps an endpoint that has lost its channel until it may be closed.
  void retire(std::shared_ptr<UcxEndpoint> endpoint) noexcept;
  // Has the next progress() deliver what the channel received, to its connection.
  void schedule(UcxChannel& channel) noexcept;
  void schedule_check() noexcept { next_check_ns_ = 1; }
  // Sends the rest, and keeps the channel until the peer has received it all and ends its socket.
  void linger(SocketStream stream, std::unique_ptr<UcxChannel> channel, Bytes unsent, std::string peer);
  unsigned messages_in_flight = 0;  // whose memory UCX still reads

 private:
  struct Lingering {
    SocketStream stream;
    std::unique_ptr<UcxChannel> channel;
    Bytes unsent;
    std::string peer;
    size_t sent = 0;
    bool has_sent_all = false, has_failed = false;
    ClosingTime time = {};
    size_t left() const noexcept { return unsent.size() - sent + static_cast<size_t>(channel->unread()); }
  };

  UcxFabric(const FabricOptions& options, Hub& hub) : options_(options), hub_(hub) {}
  Status start();
  UcxChannel* find(uint64_t token) const noexcept;
  bool is_connecting() const noexcept;
  void find_puts() noexcept;
  void deliver_ready() noexcept;
  void check(uint64_t now) noexcept;
  void send_remaining() noexcept;
  bool is_over(Lingering& one, uint64_t now) noexcept;
  template <unsigned Id>
  static ucs_status_t on_message(void* self, const void* header, size_t header_size, void* data, size_t size,
                                 const ucp_am_recv_param_t* param) noexcept;

  const FabricOptions options_;
  Hub& hub_;
  std::unique_ptr<UcxWorker> worker_;
  unsigned failures_ = 0, failures_seen_ = 0;  // of endpoints
  uint64_t next_check_ns_ = 0;                 // when check() has something to do; 0: never
  uint64_t recheck_ns_ = 0;                    // until the next progress while messages are in flight
  unsigned seen_in_flight_ = 0;                // at the last one
  using Endpoints = std::vector<std::unique_ptr<UcxEndpoint>>;
  std::map<std::string, std::weak_ptr<Endpoints>, std::less<>> endpoints_;  // by worker address
  std::vector<UcxChannel*> channels_;  // index: the low 16 bits of the token; null: free
  std::vector<UcxChannel*> ready_;
  std::list<Lingering> lingering_;
  std::vector<std::pair<std::shared_ptr<UcxEndpoint>, uint64_t>>
      retired_;  // with the time when they are closed at the latest
};

}  // namespace tc::transport
