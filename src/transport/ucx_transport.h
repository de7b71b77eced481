// SPDX-License-Identifier: Apache-2.0
//
// The transport over UCX: who listens, who is connected, when UCX is progressed, and how to sleep.
//
// Peers find each other on plain TCP sockets of ours and exchange the addresses of their UCX workers there. The
// socket stays open: the kernel closes it when a process dies, whatever UCX_TLS says. docs/transport.md has the
// measurements behind that.
//
// Thread: all calls from the node's, but for wake().
#pragma once

#include <map>
#include <vector>

#include "transport/lone_call.h"
#include "transport/peer_table.h"
#include "transport/ucx_peer.h"
#include "transport/ucx_worker.h"

namespace tc::transport {

class alignas(4096) UcxTransport final : public Transport {
 public:
  static Result<std::unique_ptr<Transport>> make(const UcxOptions& options, Events& events);
  ~UcxTransport() override;

  Result<std::string> listen(std::string_view address) override;
  Result<std::unique_ptr<Connection>> connect(std::string_view address) override;
  unsigned progress() noexcept override;
  Seen wait_for_messages(Looking& looking) noexcept override;
  bool put_alone(uint32_t index, uint64_t header, std::initializer_list<ByteView> body) noexcept override;
  void flush() noexcept override { flush_list_.flush_all(); }
  bool sleep(Deadline deadline) noexcept override;
  void wake() noexcept override;
  std::string version() const override { return UcxWorker::version(); }
  std::string name() const override { return "ucx"; }

  // For peers.
  const UcxOptions& options() const noexcept { return options_; }
  UcxWorker& worker() const noexcept { return *worker_; }
  // Has any endpoint failed, ever?
  bool has_failures() const noexcept { return failures_ != 0; }
  void watch_peers() noexcept { peers_need_watching_ = true; }
  FlushList& flush_list() noexcept { return flush_list_; }
  uint64_t machine() const noexcept { return machine_; }
  bool can_use_rings() const noexcept { return can_use_rings_; }
  Greeting greeting(const UcxPeer& peer) const;
  Result<std::shared_ptr<UcxEndpoint>> endpoint_to(const Bytes& worker_address);
  // The peer has something for deliver() or settle(). Called from inside UCX's callbacks as well.
  void note(UcxPeer& peer);
  void watch_socket(UcxPeer& peer) noexcept;
  void forget_socket(UcxPeer& peer) noexcept;

 private:
  UcxTransport(const UcxOptions& options, Events& events) : Transport(came_), events_(events), options_(options) {}
  Status start();
  bool runs_alone(const void* data, size_t size, const ucp_am_recv_param_t& param) noexcept;
  void take_message(unsigned id, ByteView header, ByteView data, const ucp_am_recv_param_t& param) noexcept;
  Result<UcxPeer*> add_peer(Fd socket, std::string address, bool accepted);
  UcxPeer* find(uint64_t token) const noexcept;
  void accept_peers(const Fd& listener);
  unsigned turn_worker() noexcept;
  // Around what turns UCX (`turn`): the first call that comes alone may be handed over.
  template <class Turn>
  auto handing_over(const Turn& turn) noexcept {
    pulse.hands_over = pulse.at_once;
    const auto result = turn();
    pulse.hands_over = false;  // closing an endpoint turns UCX as well, in the middle of other things
    if (failures_ != failures_seen_) [[unlikely]]
      see_to_failures();
    return result;
  }
  void see_to_failures() noexcept;
  // Sockets and timers. Does nothing when it looked less than `min_gap_ns` ago.
  void look_around(uint64_t min_gap_ns) noexcept;
  unsigned deliver_all() noexcept;
  void review() noexcept;
  bool settle_into_sleep(Deadline deadline) noexcept;
  bool anything_to_read(uint64_t arrivals_before) noexcept;
  void tell_writers(bool asleep) noexcept;
  enum class SleepEnd : uint8_t { time, message, other };  // message: and nothing else has happened
  SleepEnd wait_for_event(Deadline deadline) noexcept;
  SleepEnd wait_for_event(uint64_t left_ns, const Fd& other) noexcept;
  SleepEnd nap(const Looking& looking) noexcept;
  bool goes_on() noexcept;
  Seen find_messages(Looking& looking) noexcept;
  void drain(uint64_t ms) noexcept;
  Status handle_messages(unsigned id, ucp_am_recv_callback_t receive);
  static ucs_status_t on_batch(void* self, const void* header, size_t header_size, void* data, size_t size,
                               const ucp_am_recv_param_t* param) noexcept;
  template <unsigned id>
  static ucs_status_t on_message(void* self, const void* header, size_t header_size, void* data, size_t size,
                                 const ucp_am_recv_param_t* param) noexcept;

  // What each look touches, one cache line with Pulse, and behind it what each message touches, all on one page: with more
  // nodes than cores it is cold.
  ucp_worker_h ucp_ = nullptr;  // worker_'s
  unsigned failures_ = 0, failures_seen_ = 0;
  uint32_t calls_ = 0, waits_ = 0;
  bool busy_ = false;              // UCX wants to be progressed at every turn
  bool greeting_ = false;          // sockets want to be looked at often
  bool by_sockets_alone_ = false;  // worker_ is
  bool arms_ = true;               // UCX, before the next nap
  // A peer may have set a timer, or have sends on the way. Else falling asleep, which a busy node does for nearly every
  // message when there are more of them than cores, need not touch the peers.
  bool peers_need_watching_ = true;
  int event_fd_ = -1;  // worker_'s
  Fd epoll_, wake_fd_;
  Events& events_;
  PeerTable table_;  // by the token's low 16 bits, as peers_
  FlushList flush_list_{pulse};
  LoneCall lone_call_;

  std::vector<UcxPeer*> noted_;
  Arrivals came_;

  std::unique_ptr<UcxWorker> worker_;
  std::map<std::string, std::weak_ptr<UcxEndpoint>, std::less<>> endpoints_;  // by worker address
  std::vector<std::unique_ptr<UcxPeer>> peers_;                               // null: free
  uint64_t last_look_ = 0;
  bool can_use_rings_ = false;  // our stores are seen by a receiver that falls asleep
  const UcxOptions options_;
  uint64_t machine_ = 0;
  std::vector<Fd> listeners_;
  std::string listening_;
};

}  // namespace tc::transport
