// SPDX-License-Identifier: Apache-2.0
//
// A peer that has connected and not greeted yet.
//
//     first byte -> TLS: handshake -> may_connect()? ------------> greeting complete
//                |-> plain, on a trusted network: may_connect()? ---^
//                |-> plain, from elsewhere: refused                 |
//     Unix socket: its origin was admitted when it was accepted ----'
//
// Thread: the node's.
#pragma once

#include <optional>

#include "transport/greeter.h"
#include "transport/handshake.h"
#include "transport/hub.h"

namespace tc::transport {

// A peer that has connected and greeted.
struct GreetedPeer {
  SocketStream stream;
  Origin origin;
  Greeting greeting;
  Fd descriptor;  // that the peer sent with its greeting, if any
};

class PendingPeer final : public Watcher, private Handshake::Owner {
 public:
  class Owner {
   public:
    virtual Status may_connect(const Origin& origin) = 0;
    // The greeting is complete, or the peer is to be refused. The peer has ended its part: it is destroyed later.
    virtual void on_greeted(PendingPeer& peer) = 0;
    virtual void on_failed(PendingPeer& peer, const Error& why) noexcept = 0;

   protected:
    ~Owner() = default;
  };

  PendingPeer(Hub& hub, Owner& owner, Fd socket, Origin origin, uint64_t deadline);
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
  Owner& owner_;
  const uint64_t deadline_ns_;
  const std::string counted_host_;
  Stage stage_;
  uint32_t watched_ = EPOLLIN;
  GreetedPeer peer_;  // its greeting is empty until all of it is here
  std::optional<Handshake> handshake_;
  Greeter greeter_;
};

}  // namespace tc::transport
