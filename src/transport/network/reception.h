// SPDX-License-Identifier: Apache-2.0
//
// Where peers come in: listeners, and the half-open connections of those who have not greeted yet.
//
// Nothing that a stranger says is read before the node has said that somebody from there may connect. Strangers are
// limited in number (admission.h), in time, in bytes (greeting.h) and in descriptors, of which some are kept for the
// node itself; each refusal is counted and told.
//
// Thread: the node's.
#pragma once

#include <list>

#include "transport/greeter.h"
#include "transport/network/admission.h"
#include "transport/network/farewells.h"
#include "transport/transport.h"

namespace tc::transport {

// A peer that has connected and greeted.
struct Guest {
  Fd socket;
  Origin origin;
  Greeting greeting;
  Fd descriptor;  // came along, or not
};

class Reception {
 public:
  class Host {
   public:
    virtual Status may_connect(const Origin& origin) = 0;
    virtual void on_guest(Guest guest) = 0;
    // A stranger was turned away, with this reason.
    virtual void on_refused(const std::string& who, const Error& why) = 0;

   protected:
    ~Host() = default;
  };

  Reception(Poller& poller, Farewells& farewells, Host& host);
  ~Reception();

  // Lets peers in by this socket, which listens. `is_local`: a Unix socket.
  Status open(Fd listener, bool is_local);
  // Lets go of those that have greeted, were refused, or took too long. The time when there will be more to do; 0: never.
  uint64_t sweep(uint64_t now) noexcept;
  bool has_half_open() const noexcept { return !half_open_.empty(); }

 private:
  struct Listener final : Watcher {
    Listener(Reception& reception, Fd fd, bool local) : owner(reception), socket(std::move(fd)), is_local(local) {}
    Reception& owner;
    Fd socket;
    const bool is_local;
    void on_ready(uint32_t) noexcept override { owner.accept(*this); }
  };
  struct HalfOpen final : Watcher {
    HalfOpen(Reception& reception, Guest who) : owner(reception), guest(std::move(who)) {}
    Reception& owner;
    Guest guest;
    Greeter greeter;
    uint64_t give_up_at_ns = 0;
    bool over = false;
    void on_ready(uint32_t) noexcept override { owner.go_on(*this); }
  };

  void accept(Listener& listener) noexcept;
  void welcome(Fd socket, bool is_local);
  void make_room_for(const Origin& origin);
  bool has_descriptors_for(Fd& socket, const Origin& origin) noexcept;
  bool free_descriptor_for(const Origin& origin) noexcept;
  void go_on(HalfOpen& one) noexcept;
  void refuse(Fd socket, const std::string& who, const Error& why);
  void drop(HalfOpen& one, const Error& why) noexcept;
  void time_out(HalfOpen& one) noexcept;
  void turn_one_away(const Listener& listener) noexcept;

  Poller& poller_;
  Farewells& farewells_;
  Host& host_;
  std::list<Listener> listeners_;
  std::list<HalfOpen> half_open_;  // oldest first
  Fd spare_;                       // let go of when there are no descriptors, to turn somebody away
  int descriptor_limit_;
};

}  // namespace tc::transport
