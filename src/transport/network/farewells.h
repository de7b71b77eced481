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

  // Takes over a socket that is watched no more. The oldest one goes at once when there are too many.
  void add(Fd socket, Bytes unsent);
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
    bool over = false;
    Poller* poller = nullptr;

    void on_ready(uint32_t events) noexcept override;
    void send() noexcept;
    void read() noexcept;
    void end() noexcept;
  };

  Poller& poller_;
  std::list<Farewell> all_;  // oldest first
};

}  // namespace tc::transport
