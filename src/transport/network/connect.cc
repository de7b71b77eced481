// SPDX-License-Identifier: Apache-2.0
//
// How the network connects to a peer, and accepts one that has greeted.
#include "transport/network/network.h"
#include "transport/origin.h"
#include "transport/ring/ring_connection.h"

namespace tc::transport {

namespace {

// A connection to that Unix socket, if a process of our own user listens there.
Fd connect_to_own_user(const SocketAddress& address) {
  auto socket = connect_to(address);
  return socket && origin_of(*socket).same_user ? std::move(*socket) : Fd();
}

// A connection to the local listener that belongs to one of these addresses. A node that listens on all interfaces has
// named it after "0.0.0.0" or "[::]".
Fd connect_to_local_listener(const std::vector<SocketAddress>& addresses) {
  for (const auto& address : addresses) {
    if (!address.is_here()) continue;
    for (const auto& name : {address.text(), address.any_interface(), fmt::format("[::]:{}", address.port())})
      if (Fd socket = connect_to_own_user(SocketAddress::local_listener_of(name))) return socket;
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<Connection>> Network::connect(std::string_view address, ByteView hello) {
  if (address.starts_with(unix_prefix)) {
    TC_ASSIGN(const auto path, SocketAddress::at_path(address.substr(unix_prefix.size())));
    Fd socket = can_use_rings_ ? connect_to_own_user(path) : Fd();
    if (!socket) return fail(TC_ERR_DISCONNECTED, "no process of this user listens at {}", address);
    return connect_by_ring(std::move(socket), address, hello);
  }
  TC_ASSIGN(auto found, resolve(address, false));
  if (can_use_rings_ && (options_.choice == Choice::automatic || options_.choice == Choice::shm))
    if (Fd socket = connect_to_local_listener(found)) return connect_by_ring(std::move(socket), address, hello);
  if (options_.choice == Choice::shm)
    return fail(TC_ERR_UNSUPPORTED,
                "no process of this user listens at {} on this host, so no memory can be shared with it", address);
  auto socket = connect_to(found.front());
  if (!socket) return context(fmt::format("connecting to {}", address), std::move(socket).error());
  std::vector<SocketAddress> others(found.begin() + 1, found.end());
  if (fabric_ != nullptr) return fabric_->connect(std::move(*socket), std::string(address), std::move(others), hello);
  return TcpConnection::connect(*this, std::move(*socket), std::string(address), std::move(others), hello);
}

Result<std::unique_ptr<Connection>> Network::connect_by_ring(Fd socket, std::string_view address, ByteView hello) {
  return RingConnection::connect(*this, std::move(socket), std::string(address), options_.ring_bytes, hello);
}

void Network::on_greeted(GreetedPeer peer) {
  auto connection = accept(peer);
  if (connection) return events.on_accept(std::move(*connection), peer.greeting.hello);
  events.on_refused(peer.origin.text, connection.error());
  if (send_at_once(peer.socket, encode_refusal(connection.error()))) finish_closing(std::move(peer.socket), {});
}

Result<std::unique_ptr<SocketConnection>> Network::accept(GreetedPeer& peer) {
  const auto& wanted = peer.greeting.transport;
  const bool is_local = local_address(peer.socket).family() == AF_UNIX;
  // Memory is shared with processes of our own user only, even if others may connect.
  if (is_local && wanted == RingConnection::name && peer.origin.same_user)
    return RingConnection::accept(*this, peer.socket, peer.origin, peer.greeting, std::move(peer.descriptor));
  if (!is_local && wanted == TcpConnection::name) return TcpConnection::accept(*this, peer.socket, peer.origin);
  if (!is_local && fabric_ != nullptr && wanted.starts_with("ucx"))
    return fabric_->accept(peer.socket, peer.origin, peer.greeting);
  return fail(TC_ERR_UNSUPPORTED, "the peer wants the transport '{}', which this node does not accept{}", wanted,
              wanted.starts_with("ucx") ? fmt::format("; start it with the option transport={}", wanted) : "");
}

}  // namespace tc::transport
