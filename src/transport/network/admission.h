// SPDX-License-Identifier: Apache-2.0
//
// Accepts peers: listeners, and pending peers, which have not greeted yet (pending_peer.h).
//
//     accept -> room? -> pending -> may_connect(origin)? -> greeting complete -> Host::on_greeted()
//                 | no      | error, deadline   | no
//                 '---------'-------------------'-> refused: reason sent, Host::on_refused()
//
// The node agrees to a peer's origin before its greeting is read. Until then, of the bytes of a TCP connection, the first
// is looked at and the handshake is read. Until a peer has greeted, it is limited
//   - in number (pending_limits.h),
//   - in time (5 s for all of it),
//   - in bytes (trust/tls.h, greeting.h),
//   - in file descriptors, some of which are reserved for the node itself.
//
// Thread: the node's.
#pragma once

#include <list>

#include "transport/network/closing_sockets.h"
#include "transport/network/pending_limits.h"
#include "transport/network/pending_peer.h"

namespace tc::transport {

class Admission : private PendingPeer::Owner {
 public:
  class Host {
   public:
    virtual Status may_connect(const Origin& origin) = 0;
    virtual void on_greeted(GreetedPeer peer) = 0;
    // A peer was refused before it had greeted.
    virtual void on_refused(const std::string& origin, const Error& why) = 0;

   protected:
    ~Host() = default;
  };

  Admission(Hub& hub, ClosingSockets& closing_sockets, Host& host);
  ~Admission();

  // Accepts peers on this listening socket. `is_local`: a Unix socket. TC_ERR_LIMIT: this process may open too few file
  // descriptors to take any peer.
  Status open(Fd listener, bool is_local);
  // Refuses pending peers that took too long. Returns when to call it again; 0: nothing is pending.
  uint64_t sweep(uint64_t now) noexcept;
  bool has_pending() const noexcept { return !pending_.empty(); }

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

  Status may_connect(const Origin& origin) override { return host_.may_connect(origin); }
  void on_greeted(PendingPeer& peer) override;
  void on_failed(PendingPeer& peer, const Error& why) noexcept override;

  Hub& hub_;
  ClosingSockets& closing_sockets_;
  Host& host_;
  std::list<Listener> listeners_;
  std::list<PendingPeer> pending_;  // oldest first
  Fd spare_descriptor_;             // closed for a moment to accept and drop a peer when no other descriptor is left
  int descriptor_limit_;
};

}  // namespace tc::transport
