// SPDX-License-Identifier: Apache-2.0
//
// Accepts peers and keeps them until they have greeted.
//
// Thread: the node's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "transport/closing_sockets.h"
#include "transport/greeting.h"
#include "transport/handshake.h"
#include "transport/hub.h"

namespace tc::transport {

// How many connections may be pending: accepted, but not greeted yet. Peers that connect and send nothing must not keep
// others out. So pending connections are limited for each host and for all hosts together. When there are too many, one
// of the host with most of them is closed, chosen at random. Under a flood each connection then has the same chance to
// last as long as its greeting takes, whatever the flood's pace is, and peers try again (node/rates.h). Were it
// the oldest, a flood that is quicker than a greeting would keep out everybody at its address. Processes of our own user
// are counted apart, so that other peers cannot displace them.
//
// Thread: any.
struct PendingLimits {
  size_t of_one_host = 128;  // many processes of a host may connect at once
  size_t of_all_hosts = 256;
  size_t of_our_user = 256;
};

// What a pending connection counts for.
struct PendingCount {
  std::string_view host;  // counted_host(); empty for a process of our own user
  // It has proved its key, which may connect. It goes only when no other one of its host does.
  bool has_proved_its_key = false;
};

// A host as it is counted: an IPv4 address, or the network of 64 bits that an IPv6 address is in, because a host that has
// one address there has all of them.
std::string counted_host(std::string_view address);

// Which pending connection to close so that one more from `host` can be accepted; nothing when there is room. `random`: any
// number, which makes the choice.
std::optional<size_t> pending_to_evict(std::span<const PendingCount> pending, std::string_view host,
                                       const PendingLimits& limits, uint64_t random);

// A peer that has connected and greeted.
struct GreetedPeer {
  SocketStream stream;
  Origin origin;
  Greeting greeting;
  Fd descriptor;  // that the peer sent with its greeting, if any
};

class Admission;

// A peer that has connected and not greeted yet.
//
//     first byte -> TLS: handshake -> may_connect()? ------------> greeting complete
//                |-> plain, on a trusted network: may_connect()? ---^
//                |-> plain, from elsewhere: refused                 |
//     Unix socket: its origin was admitted when it was accepted ----'
class PendingPeer final : public Watcher, private Handshake::Owner {
 public:
  PendingPeer(Hub& hub, Admission& admission, Fd socket, Origin origin, uint64_t deadline);
  ~PendingPeer();
  PendingPeer(const PendingPeer&) = delete;
  PendingPeer& operator=(const PendingPeer&) = delete;

  // Begins to read. Call once.
  Status start();
  // It is refused, or taken over: the stream is the caller's.
  GreetedPeer take() noexcept;
  // Can it be sent a reason? Not in the middle of a handshake.
  bool can_be_told() const noexcept { return !handshake_ || !handshake_->has_answered(); }

  const Origin& origin() const noexcept { return peer_.origin; }
  uint64_t deadline_ns() const noexcept { return deadline_ns_; }
  // As PendingCount says.
  std::string_view counted_host() const noexcept { return counted_host_; }
  bool has_proved_its_key() const noexcept { return stage_ == Stage::greeting && peer_.origin.key; }
  bool has_ended() const noexcept { return stage_ == Stage::ended; }

  void on_ready(uint32_t events) noexcept override;

 private:
  enum class Stage : uint8_t { first_byte, handshake, greeting, ended };

  Status progress();
  Status judge_first_byte();
  Status begin_handshake();
  Status continue_greeting();
  void on_handshake(Status result) noexcept override;
  void watch_for_handshake(uint32_t events) noexcept override { watch(events); }
  void watch(uint32_t events) noexcept;
  template <class Step>
  void run(Step step) noexcept;

  Hub& hub_;
  Admission& admission_;
  const uint64_t deadline_ns_;
  const std::string counted_host_;
  Stage stage_;
  uint32_t watched_ = EPOLLIN;
  GreetedPeer peer_;  // its greeting is empty until all of it is here
  std::optional<Handshake> handshake_;
  Greeter greeter_;
};

// Accepts peers: listeners, and pending peers, which have not greeted yet.
//
//     accept -> room? -> pending -> may_connect(origin)? -> greeting complete -> OnGreeted
//                 | no      | error, deadline   | no
//                 '---------'-------------------'-> refused: reason sent, Events::on_refused()
//
// The node agrees to a peer's origin before its greeting is read. Until then, of the bytes of a TCP connection, the first
// is looked at and the handshake is read. Until a peer has greeted, it is limited
//   - in number (PendingLimits),
//   - in time (5 s for all of it),
//   - in bytes (trust/tls.h, greeting.h),
//   - in file descriptors, some of which are reserved for the node itself.
class Admission {
 public:
  using OnGreeted = std::function<void(GreetedPeer peer)>;

  Admission(Hub& hub, OnGreeted on_greeted);
  ~Admission();
  Admission(const Admission&) = delete;
  Admission& operator=(const Admission&) = delete;

  // Accepts peers on this listening socket. `is_local`: a Unix socket. TC_ERR_LIMIT: this process may open too few file
  // descriptors to take any peer.
  Status open(Fd listener, bool is_local);
  // Refuses pending peers that took too long. Returns when to call it again; 0: nothing is pending.
  uint64_t sweep(uint64_t now) noexcept;
  bool has_pending() const noexcept { return !pending_.empty(); }

  // For PendingPeer: its greeting is complete, or it is to be refused. It is destroyed by a later sweep().
  void on_greeted(PendingPeer& peer);
  void on_failed(PendingPeer& peer, const Error& why) noexcept;

 private:
  struct Listener final : Watcher {
    Listener(Admission& admission, Fd fd, bool local) : owner(admission), socket(std::move(fd)), is_local(local) {}
    Admission& owner;
    Fd socket;
    const bool is_local;
    void on_ready(uint32_t) noexcept override { owner.accept(*this); }
  };

  Status check_descriptor_limit(bool is_local);
  void accept(Listener& listener) noexcept;
  void drop_without_descriptor(const Listener& listener) noexcept;
  void admit(Fd socket, bool is_local);
  void make_room_for(const Origin& origin);
  bool has_descriptors_for(Fd& socket, const Origin& origin) noexcept;
  bool free_descriptor_for(const Origin& origin) noexcept;
  void refuse(SocketStream stream, const std::string& origin, const Error& why);
  void expire(PendingPeer& peer) noexcept;

  Hub& hub_;
  const OnGreeted on_greeted_;
  std::list<Listener> listeners_;
  std::list<PendingPeer> pending_;  // oldest first
  Fd spare_descriptor_;             // closed for a moment to accept and drop a peer when no other descriptor is left
  int descriptor_limit_;
};

}  // namespace tc::transport
