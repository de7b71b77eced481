// SPDX-License-Identifier: Apache-2.0
//
// What the connections of one node share with its transport.
//
// Thread: the node's.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "base/address_range.h"
#include "transport/closing_sockets.h"
#include "transport/handshake.h"
#include "transport/stream.h"
#include "transport/transport.h"

namespace tc::transport {

class SocketConnection;

struct Hub {
  // A session of an encrypted connection. TC_ERR_UNSUPPORTED: this node has no plug-in for that.
  using MakeSession = std::function<Result<std::unique_ptr<trust::TlsSession>>(trust::TlsRole role)>;

  Hub(Events& events, PollState& poll_state, MakeSession make_session)
      : events(events), flush_list(poll_state), make_session(std::move(make_session)) {}
  Hub(const Hub&) = delete;
  Hub& operator=(const Hub&) = delete;

  // A connection was made, opened, or ended: the transport goes through all of them in the next poll.
  void mark_changed() noexcept { has_changed = flush_list.poll_state().urgent = true; }
  // Takes over the socket of a closed connection: sends the unsent bytes, and waits for the peer to end its side.
  // `peer`: its address, for messages.
  void finish_closing(Fd socket, Bytes unsent, std::string peer) noexcept {
    try {
      closing_sockets.add(std::move(socket), std::move(unsent), std::move(peer));
    } catch (const std::exception&) {  // no memory: the socket is closed at once
    }
    mark_changed();
  }

  Events& events;
  FlushList flush_list;
  Poller poller;
  HandshakeWorker handshakes{poller};
  ClosingSockets closing_sockets{poller, events};
  MakeSession make_session;
  std::span<const AddressRange> trusted_networks;
  std::vector<SocketConnection*> connections;  // all that exist
  bool has_changed = false;                    // see mark_changed()
};

}  // namespace tc::transport
