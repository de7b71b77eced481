// SPDX-License-Identifier: Apache-2.0
//
// Sockets whose connections were closed. What is left to be sent leaves, then the peer is told of the end, and its own
// end is waited for: to close a TCP socket while bytes are on their way in would lose those on their way out.
//
// Thread: the node's.
#pragma once

#include <list>

#include "base/bytes.h"
#include "transport/poller.h"

namespace tc::transport {

class Farewells {
 public:
  explicit Farewells(Poller& poller) noexcept : poller_(poller) {}

  // Takes over the socket of a connection; it is watched no more. The oldest goes at once when there are too many.
  void add(Fd socket, Bytes unsent) { take(std::move(socket), std::move(unsent), false); }
  // The same for a peer that was refused, and told so. Of these there are few.
  void add_refused(Fd socket) { take(std::move(socket), {}, true); }
  // Closes the oldest of those that were refused; false: there is none.
  bool drop_refused() noexcept;
  // Lets go of those that have ended, or took too long. The time when the next one will have; 0: there are none.
  uint64_t sweep(uint64_t now) noexcept;
  bool empty() const noexcept { return all_.empty(); }
  // Does one still have something to send?
  bool has_unsent() const noexcept;

 private:
  struct Farewell final : Watcher {
    Fd socket;
    Bytes unsent;
    size_t sent = 0;
    uint64_t give_up_at_ns = 0;
    bool is_refused = false;
    bool over = false;
    Poller* poller = nullptr;

    void on_ready(uint32_t events) noexcept override;
    void send() noexcept;
    void read() noexcept;
    void end() noexcept;
  };

  void take(Fd socket, Bytes unsent, bool is_refused);
  Farewell* oldest(bool is_refused, size_t least) noexcept;

  Poller& poller_;
  std::list<Farewell> all_;  // oldest first
};

}  // namespace tc::transport
