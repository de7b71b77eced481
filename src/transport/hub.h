// SPDX-License-Identifier: Apache-2.0
//
// What the connections of one node share with its transport.
//
// Thread: the node's.
#pragma once

#include <vector>

#include "transport/poller.h"
#include "transport/transport.h"

namespace tc::transport {

class SocketConnection;

class Hub {
 public:
  Hub(Events& events, Pulse& pulse) noexcept : events(events), flush_list(pulse) {}

  Events& events;
  FlushList flush_list;
  Poller poller;

  // All that live.
  std::vector<SocketConnection*> connections;
  // One of them was made, opened, or ended since the transport looked at them.
  bool has_changed = false;
  void note_change() noexcept { has_changed = flush_list.pulse().urgent = true; }

  // Takes over a socket whose connection was closed: sends what is left of it, and waits for the peer to see the end.
  virtual void part_with(Fd socket, Bytes unsent) noexcept = 0;

 protected:
  ~Hub() = default;
};

}  // namespace tc::transport
