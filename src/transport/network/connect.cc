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
Fd connect_to_local_listener(const std::vector<SocketAddress>& addresses, bool shares_memory) {
  for (const auto& address : addresses) {
    if (!address.is_here()) continue;
    for (const auto& name : {address.text(), address.any_interface(), fmt::format("[::]:{}", address.port())})
      if (Fd socket = connect_to_own_user(SocketAddress::local_listener_of(name, shares_memory))) return socket;
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<Connection>> Network::connect(std::string_view address, ByteView hello) {
  if (address.starts_with(unix_prefix)) {
    TC_ASSIGN(const auto path, SocketAddress::at_path(address.substr(unix_prefix.size())));
    Fd socket = connect_to_own_user(path);
    if (!socket) return fail(TC_ERR_DISCONNECTED, "no process of this user listens at {}", address);
    return connect_locally(std::move(socket), may_start_rings(), address, hello);
  }
  TC_ASSIGN(auto where, parse_host_and_port(address));
  if (const auto found = numeric_addresses(where); !found.empty()) return connect_to_one_of(found, address, hello);
  return NamedConnection::start(
      *this, name_lookups_, named_, std::string(address), std::move(where),
      [this, address = std::string(address), hello = Bytes(hello.begin(), hello.end())](
          const std::vector<SocketAddress>& found) { return connect_to_one_of(found, address, hello); });
}

bool Network::is_by_name(std::string_view address) const {
  if (address.starts_with(unix_prefix)) return false;
  const auto where = parse_host_and_port(address);
  return where && numeric_addresses(*where).empty();
}

// `found`: what the address stands for, the best first.
Result<std::unique_ptr<SocketConnection>> Network::connect_to_one_of(const std::vector<SocketAddress>& found,
                                                                     std::string_view address, ByteView hello) {
  const auto choice = options_.choice;
  if (choice == Choice::automatic || choice == Choice::shm || choice == Choice::unix_socket) {
    if (Fd socket = connect_to_local_listener(found, true))
      return connect_locally(std::move(socket), may_start_rings(), address, hello);
    if (Fd socket = connect_to_local_listener(found, false))
      return connect_locally(std::move(socket), false, address, hello);
  }
  if (choice == Choice::shm || choice == Choice::unix_socket)
    return fail(TC_ERR_UNSUPPORTED, "no process of this user listens at {} on this host, so {}", address,
                choice == Choice::shm ? "no memory can be shared with it" : "there is no Unix socket to it");
  auto next = found.begin();
  auto socket = connect_to(*next++);
  while (!socket && next != found.end()) socket = connect_to(*next++);  // as for IPv6 where there is no route
  if (!socket) return context(fmt::format("connecting to {}", address), std::move(socket).error());
  std::vector<SocketAddress> others(next, found.end());
  if (fabric_ != nullptr) return fabric_->connect(std::move(*socket), std::string(address), std::move(others), hello);
  return TcpConnection::connect(*this, std::move(*socket), std::string(address), std::move(others), hello);
}

bool Network::may_start_rings() const noexcept { return can_use_rings_ && options_.choice != Choice::unix_socket; }

// To a process of our own user. Without rings, which this kernel or the peer's may not allow, by a stream of bytes.
Result<std::unique_ptr<SocketConnection>> Network::connect_locally(Fd socket, bool by_ring, std::string_view address,
                                                                   ByteView hello) {
  if (by_ring)
    return RingConnection::connect(*this, std::move(socket), std::string(address), options_.ring_bytes, hello);
  if (options_.choice == Choice::shm)
    return fail(TC_ERR_UNSUPPORTED, "no memory can be shared with {}: a kernel has no membarrier", address);
  return TcpConnection::connect(*this, std::move(socket), std::string(address), {}, hello);
}

void Network::on_greeted(GreetedPeer peer) {
  auto connection = accept(peer);
  if (connection) return events.on_accept(std::move(*connection), peer.greeting.hello);
  events.on_refused(peer.origin.text, connection.error());
  if (!peer.stream.send_at_once(encode_refusal(connection.error()))) return;
  Bytes rest = peer.stream.finish({});
  finish_closing(peer.stream.take_socket(), std::move(rest), peer.origin.text);
}

// A stream goes by the name that follows from how the peer has come, so the peer must have meant just that.
Result<std::unique_ptr<SocketConnection>> Network::accept(GreetedPeer& peer) {
  const auto& wanted = peer.greeting.transport;
  const auto& origin = peer.origin;
  // Memory is shared with processes of our own user only, even if others may connect.
  if (origin.same_user && can_use_rings_ && wanted == RingConnection::name)
    return RingConnection::accept(*this, peer.stream, origin, peer.greeting, std::move(peer.descriptor));
  if (wanted == TcpConnection::name_for(origin)) return TcpConnection::accept(*this, peer.stream, origin);
  if (!origin.is_local && fabric_ != nullptr && wanted.starts_with("ucx"))
    return fabric_->accept(peer.stream, origin, peer.greeting);
  return fail(TC_ERR_UNSUPPORTED, "the peer wants the transport '{}', which this node does not accept{}", wanted,
              wanted.starts_with("ucx") ? fmt::format("; start it with the option transport={}", wanted) : "");
}

}  // namespace tc::transport
