// SPDX-License-Identifier: Apache-2.0
//
// One connection from inside: the plain socket on which the two sides greet each other and by whose end a death is
// noticed, the UCX endpoint, and the streams.
//
//     connecting -> greeting -> up -> closing -> over
//
// Thread: the node's. on_message() runs inside UCX's callbacks and only takes notes; events are delivered by
// deliver(), called from progress().
#pragma once

#include <deque>
#include <optional>

#include "transport/greeting.h"
#include "transport/offer.h"
#include "transport/peer_table.h"
#include "transport/ring_in.h"
#include "transport/socket.h"
#include "transport/transport.h"
#include "transport/ucx_endpoint.h"
#include "transport/ucx_out.h"

namespace tc::transport {

class UcxConnection;
class UcxTransport;

// What the transports tell each other, in the first byte of an am_signal.
enum class Signal : uint8_t { wake = 1, goodbye = 2, use_ring = 3, use_put = 4, sleeping = 5 };

class UcxPeer {
 public:
  using Stage = PeerStage;

  // `entry`: the peer's alone while it lives. `token`: marks messages for this connection. `socket`: connecting, or
  // accepted from a listener.
  UcxPeer(UcxTransport& transport, std::shared_ptr<PeerEntry> entry, uint64_t token, Fd socket, std::string address,
          bool accepted);
  ~UcxPeer();

  // For the connection's owner.
  Status send_control(ByteView frame);
  Result<Bytes> offer(Way allowed);
  Status open_way(Way wish, ByteView peer_offer);
  void close() noexcept;
  void abandon() noexcept;  // the owner destroyed its Connection
  OutStream& out() noexcept { return out_; }
  RingIn& in() noexcept { return in_; }
  Way way() const noexcept { return way_; }
  const std::string& address() const noexcept { return address_; }
  const std::string& origin() const noexcept { return origin_; }

  // For the transport.
  uint64_t token() const noexcept { return entry_->in.token; }
  uint32_t index() const noexcept { return static_cast<uint32_t>(token() & 0xffff); }
  const Fd& socket() const noexcept { return socket_; }
  bool accepted() const noexcept { return accepted_; }
  uint32_t wanted_socket_events() const noexcept;
  void on_socket() noexcept;
  void on_message(unsigned id, uint16_t sequence, ByteView data) noexcept;
  // A frame of this peer that went past its stream was not sent at once.
  [[gnu::cold]] void keep_lone(OutBuffer& lone, ucs_status_ptr_t request) noexcept {
    if (!out_.is_sent(lone, request)) out_.keep_lone(lone);
  }
  void check_time(uint64_t now) noexcept;
  uint64_t next_time() const noexcept { return timer_; }  // when check_time() has something to do; 0: never
  void check_endpoint() noexcept;
  unsigned deliver(Events& events);
  // The transport ends before the connection's owner lets go of it: nothing of UCX, nor of the transport, may be
  // touched any more.
  void orphan() noexcept;
  UcxConnection* handle() const noexcept;
  // Lets go of what a connection that ended needs no more. True: destroy it.
  bool settle() noexcept;
  bool greets() const noexcept { return stage() == Stage::connecting || stage() == Stage::greeting; }
  // Must UCX be progressed at every turn for this peer?
  bool busy() const noexcept;
  // Does the peer put frames into our memory by itself?
  bool writes_to_us() const noexcept { return in_.uses_ring(); }
  bool has_sends_on_the_way() const noexcept { return !messages_.empty() || out_.in_flight() != 0; }
  bool has_frames() noexcept;
  void fall_asleep() noexcept;  // says so to the peer, where its way in needs that
  void wake_up() noexcept;

  // For the streams.
  void send_signal(Signal signal, uint64_t value = 0) noexcept;
  [[gnu::cold]] void lose(Error reason) noexcept;
  [[gnu::cold]] void lose_for(const std::exception& problem) noexcept;
  UcxEndpoint* endpoint() const noexcept { return endpoint_.get(); }
  UcxTransport& transport() const noexcept { return transport_; }

 private:
  friend class UcxConnection;
  struct Message;

  void set_timer(uint64_t from_now_ns) noexcept;
  void finish_connecting();
  void send_greeting();
  void read_socket();
  Status read_greeting();
  Status meet(Greeting greeting);
  Status send_message(unsigned id, ByteView data);
  void take_message(unsigned id, ByteView data);
  void take_batch(ByteView batch);
  void take_signal(ByteView data);
  void let_go() noexcept;
  Status open_ring(const Offer& offer);
  Status open_put(const Offer& offer);
  Status reach_memory(const Offer& offer, std::string_view way);
  static void on_sent(void* request, ucs_status_t status, void* user) noexcept;

  Stage stage() const noexcept { return entry_->in.stage; }
  void set_stage(Stage stage) noexcept { entry_->in.stage = stage; }
  bool is_lost() const noexcept { return entry_->in.is_lost; }
  Way way_in() const noexcept { return entry_->in.way; }

  UcxTransport& transport_;
  const std::shared_ptr<PeerEntry> entry_;  // what each message touches
  std::shared_ptr<UcxEndpoint> endpoint_;
  RingIn in_;
  UcxOut out_;
  Way way_ = Way::automatic;
  std::optional<Error> reason_;
  const bool accepted_;
  bool wants_write_ = false;
  bool peer_died_ = false;      // its socket ended without a goodbye
  bool told_sleeping_ = false;  // to a peer that puts: it will send a wake before or behind its next frame
  bool wake_due_ = false;       // the peer sleeps over frames that we put
  bool announce_ = false;       // on_accept is due
  bool abandoned_ = false;
  bool orphaned_ = false;
  bool lost_told_ = false;
  uint64_t timer_ = 0;  // for check_time(): how long this stage may last
  std::unique_ptr<OwnMemory> ring_memory_;
  std::unique_ptr<RemoteKey> remote_key_;
  Fd socket_;
  const std::string origin_;  // never what the peer says
  std::string address_;
  Bytes greeting_in_, greeting_out_;
  Greeting peer_;
  RingView own_ring_;
  uint64_t nonce_ = 0;
  std::weak_ptr<UcxEndpoint> last_endpoint_;
  std::deque<Bytes> controls_out_;  // until the peer is up
  std::vector<Message*> messages_;  // handed to UCX and not done
  size_t message_bytes_out_ = 0;
  std::deque<Bytes> controls_in_;

  friend class UcxTransport;
  bool noted_ = false;  // waits for deliver()
};

// What the owner of a connection holds. May outlive the transport.
class UcxConnection final : public Connection {
 public:
  explicit UcxConnection(UcxPeer& peer) : peer_(peer) { peer.entry_->in.connection = this; }
  ~UcxConnection() override {
    peer_.entry_->in.connection = nullptr;
    peer_.abandon();
  }
  uint32_t index() const noexcept override { return peer_.index(); }
  OutStream& out() noexcept override { return peer_.out(); }
  InStream& in() noexcept override { return peer_.in(); }
  Status send_control(ByteView frame) override { return peer_.send_control(frame); }
  Result<Bytes> offer(Way allowed) override { return peer_.offer(allowed); }
  Status open_way(Way wish, ByteView peer_offer) override { return peer_.open_way(wish, peer_offer); }
  Way way() const noexcept override { return peer_.way(); }
  std::string peer_address() const override { return peer_.address(); }
  std::string origin() const override { return peer_.origin(); }
  void close() noexcept override { peer_.close(); }
  void keep(std::unique_ptr<UcxPeer> orphan) noexcept { orphan_ = std::move(orphan); }

 private:
  UcxPeer& peer_;                    // owned by the transport
  std::unique_ptr<UcxPeer> orphan_;  // or, once that is gone, by us
};

inline UcxConnection* UcxPeer::handle() const noexcept { return static_cast<UcxConnection*>(entry_->in.connection); }

}  // namespace tc::transport
