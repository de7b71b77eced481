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
#include "transport/lone_call.h"
#include "transport/offer.h"
#include "transport/ring_in.h"
#include "transport/socket.h"
#include "transport/transport.h"
#include "transport/ucx_endpoint.h"
#include "transport/ucx_out.h"

namespace tc::transport {

class UcxConnection;
class UcxTransport;

// Active message ids.
inline constexpr unsigned am_batch = 1, am_control = 2, am_signal = 3;
// What the transports tell each other, in the first byte of an am_signal.
enum class Signal : uint8_t { wake = 1, goodbye = 2, use_ring = 3, use_put = 4, sleeping = 5 };

class alignas(64) UcxPeer {
 public:
  enum class Stage : uint8_t { connecting, greeting, up, closing, over };

  // `token`: marks messages for this connection. `socket`: connecting, or accepted from a listener.
  UcxPeer(UcxTransport& transport, uint64_t token, Fd socket, std::string address, bool accepted);
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
  uint64_t token() const noexcept { return token_; }
  const Fd& socket() const noexcept { return socket_; }
  bool accepted() const noexcept { return accepted_; }
  uint32_t wanted_socket_events() const noexcept;
  void on_socket() noexcept;
  void on_message(unsigned id, uint16_t sequence, ByteView data) noexcept;
  // Runs the call that `batch` is, where it comes alone and in order. False: on_message() sees to it.
  [[gnu::hot]] bool runs_alone(uint16_t sequence, ByteView batch, LoneCall& lone_call, Pulse& pulse,
                               Events& events) noexcept {
    if (stage_ != Stage::up || is_lost_ || sequence != next_received_ || in_.uses_ring()) return false;
    ++next_received_;
    way_in_ = Way::am;
    try {
      if (lone_call.run(batch, in_, owner_, pulse, events)) [[likely]] {
        ++pulse.arrivals;
        return true;
      }
    } catch (const std::exception& problem) {
      lose_for(problem);
      return true;
    }
    --next_received_;
    return false;
  }
  void check_time(uint64_t now) noexcept;
  uint64_t next_time() const noexcept { return timer_; }  // when check_time() has something to do; 0: never
  void check_endpoint() noexcept;
  unsigned deliver(Events& events);
  // The transport ends before the connection's owner lets go of it: nothing of UCX, nor of the transport, may be
  // touched any more.
  void orphan() noexcept;
  UcxConnection* handle() const noexcept { return handle_; }
  // Lets go of what a connection that ended needs no more. True: destroy it.
  bool settle() noexcept;
  bool greets() const noexcept { return stage_ == Stage::connecting || stage_ == Stage::greeting; }
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

  // What each message touches stands together: with more nodes than cores all of it is cold.
  const uint64_t token_;
  UcxTransport& transport_;
  void* owner_ = nullptr;  // of the connection
  std::shared_ptr<UcxEndpoint> endpoint_;
  uint16_t next_received_ = 0;
  Stage stage_;
  Way way_in_ = Way::automatic;  // as the peer said
  bool is_lost_ = false;         // there is a reason_
  RingIn in_;
  alignas(64) UcxOut out_;

  UcxConnection* handle_ = nullptr;
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
  explicit UcxConnection(UcxPeer& peer) : peer_(peer) { peer.handle_ = this; }
  ~UcxConnection() override {
    peer_.handle_ = nullptr;
    peer_.owner_ = nullptr;
    peer_.abandon();
  }
  OutStream& out() noexcept override { return peer_.out(); }
  InStream& in() noexcept override { return peer_.in(); }
  Status send_control(ByteView frame) override { return peer_.send_control(frame); }
  Result<Bytes> offer(Way allowed) override { return peer_.offer(allowed); }
  Status open_way(Way wish, ByteView peer_offer) override { return peer_.open_way(wish, peer_offer); }
  Way way() const noexcept override { return peer_.way(); }
  std::string peer_address() const override { return peer_.address(); }
  std::string origin() const override { return peer_.origin(); }
  void close() noexcept override { peer_.close(); }
  void own(void* owner) noexcept override {
    Connection::own(owner);
    peer_.owner_ = owner;
  }
  void keep(std::unique_ptr<UcxPeer> orphan) noexcept { orphan_ = std::move(orphan); }

 private:
  UcxPeer& peer_;                    // owned by the transport
  std::unique_ptr<UcxPeer> orphan_;  // or, once that is gone, by us
};

}  // namespace tc::transport
