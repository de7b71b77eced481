// SPDX-License-Identifier: Apache-2.0
//
// What the connections of one node share with its transport.
//
// Thread: the node's.
#pragma once

#include <span>
#include <vector>

#include "base/address_range.h"
#include "transport/flush_list.h"
#include "transport/handshake_worker.h"
#include "transport/transport.h"

namespace tc::transport {

class SocketConnection;

class Hub {
 public:
  Hub(Events& events, PollState& poll_state) noexcept : events(events), flush_list(poll_state) {}

  Events& events;
  FlushList flush_list;
  Poller poller;
  HandshakeWorker handshakes{poller};
  std::span<const AddressRange> trusted_networks;

  // All that exist.
  std::vector<SocketConnection*> connections;
  // A connection was made, opened, or ended since the transport last went through them.
  bool has_changed = false;
  void mark_changed() noexcept { has_changed = flush_list.poll_state().urgent = true; }

  // A session of an encrypted connection. TC_ERR_UNSUPPORTED: this node has no plug-in for that.
  virtual Result<std::unique_ptr<trust::TlsSession>> make_session(trust::TlsRole role) = 0;
  // Takes over the socket of a closed connection: sends the unsent bytes, and waits for the peer to end its side.
  // `peer`: its address, for messages.
  virtual void finish_closing(Fd socket, Bytes unsent, std::string peer) noexcept = 0;

 protected:
  ~Hub() = default;
};

}  // namespace tc::transport
