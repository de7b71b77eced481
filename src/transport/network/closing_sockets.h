// SPDX-License-Identifier: Apache-2.0
//
// The sockets of closed connections, until their peers have read everything. Each one sends what is left, shuts down
// its sending side, and waits for the peer to end the other side. Closing a TCP socket at once would lose data: when
// bytes of the peer are still coming in, the kernel sends a reset, which discards what was sent before.
//
// Thread: the node's.
#pragma once

#include <list>

#include "base/bytes.h"
#include "transport/closing_time.h"
#include "transport/poller.h"
#include "transport/transport.h"

namespace tc::transport {

class ClosingSockets {
 public:
  // `events` hears of bytes that were lost.
  ClosingSockets(Poller& poller, Events& events) noexcept : poller_(poller), events_(events) {}

  // Takes over the socket of a connection to `peer`, which the poller no longer watches. When there are too many, the
  // oldest one is closed at once.
  void add(Fd socket, Bytes unsent, std::string peer) {
    take(std::move(socket), std::move(unsent), std::move(peer), false);
  }
  // The same for a peer that was refused and has been sent the reason. Fewer of these are kept.
  void add_refused(Fd socket, Bytes unsent = {}) { take(std::move(socket), std::move(unsent), {}, true); }
  // Closes the oldest socket of a refused peer; false: there is none.
  bool close_oldest_refused() noexcept;
  // Closes sockets that are done or took too long. Returns when to call it again; 0: there are none left.
  uint64_t sweep(uint64_t now) noexcept;
  bool empty() const noexcept { return all_.empty(); }
  // Would bytes be lost if the sockets were closed now? Not those that the peers' kernels have, although the peers did not
  // read them: what peers that are gone have sent is read to the end (TcpConnection).
  bool has_unfinished() const noexcept;

 private:
  struct Closing final : Watcher {
    Fd socket;
    Bytes unsent;
    size_t sent = 0;
    std::string peer;
    ClosingTime time;
    bool is_refused = false;
    bool ended = false;
    ClosingSockets* owner = nullptr;

    void on_ready(uint32_t events) noexcept override;
    void send() noexcept;
    void read() noexcept;
    void end(size_t lost_bytes) noexcept { owner->end(*this, lost_bytes); }
    size_t unsent_bytes() const noexcept { return unsent.size() - sent; }
    size_t left() const noexcept;
  };

  void take(Fd socket, Bytes unsent, std::string peer, bool is_refused);
  Closing* oldest(bool is_refused, size_t least) noexcept;
  void end(Closing& closing, size_t lost_bytes) noexcept;

  Poller& poller_;
  Events& events_;
  std::list<Closing> all_;  // oldest first
};

}  // namespace tc::transport
