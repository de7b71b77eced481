// SPDX-License-Identifier: Apache-2.0
//
// Accepts peers: listeners, and pending connections, whose peers have not greeted yet.
//
//     accept -> may_connect(origin)? -> room? -> pending -> greeting complete -> Host::on_greeted()
//                  | no                  | no      | error, deadline
//                  '---------------------'---------'-> refused: reason sent, Host::on_refused()
//
// No byte of a peer is read before the node has agreed to its origin. Until it has greeted, a peer is limited
//   - in number (pending_limits.h),
//   - in time (5 s),
//   - in bytes (greeting.h),
//   - in file descriptors, some of which are reserved for the node itself.
//
// Thread: the node's.
#pragma once

#include <list>

#include "transport/greeter.h"
#include "transport/network/closing_sockets.h"
#include "transport/network/pending_limits.h"
#include "transport/transport.h"

namespace tc::transport {

// A peer that has connected and greeted.
struct GreetedPeer {
  Fd socket;
  Origin origin;
  Greeting greeting;
  Fd descriptor;  // that the peer sent with its greeting, if any
};

class Admission {
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

  Admission(Poller& poller, ClosingSockets& closing_sockets, Host& host);
  ~Admission();

  // Accepts peers on this listening socket. `is_local`: a Unix socket.
  Status open(Fd listener, bool is_local);
  // Refuses pending connections that took too long. Returns when to call it again; 0: nothing is pending.
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
  struct Pending final : Watcher {
    Pending(Admission& admission, GreetedPeer from) : owner(admission), peer(std::move(from)) {}
    Admission& owner;
    GreetedPeer peer;  // its greeting is empty until all of it is here
    Greeter greeter;
    uint64_t deadline_ns = 0;
    bool ended = false;
    void on_ready(uint32_t) noexcept override { owner.progress(*this); }
  };

  void accept(Listener& listener) noexcept;
  void drop_without_descriptor(const Listener& listener) noexcept;
  void admit(Fd socket, bool is_local);
  void make_room_for(const Origin& origin);
  bool has_descriptors_for(Fd& socket, const Origin& origin) noexcept;
  bool free_descriptor_for(const Origin& origin) noexcept;
  void progress(Pending& pending) noexcept;
  void refuse(Fd socket, const std::string& origin, const Error& why);
  void refuse(Pending& pending, const Error& why) noexcept;
  void expire(Pending& pending) noexcept;

  Poller& poller_;
  ClosingSockets& closing_sockets_;
  Host& host_;
  std::list<Listener> listeners_;
  std::list<Pending> pending_;  // oldest first
  Fd spare_descriptor_;         // closed for a moment to accept and drop a peer when no other descriptor is left
  int descriptor_limit_;
};

}  // namespace tc::transport
