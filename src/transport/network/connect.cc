// SPDX-License-Identifier: Apache-2.0
//
// How the network reaches a peer, and takes in one that has greeted.
#include "transport/network/network.h"
#include "transport/origin.h"
#include "transport/ring/ring_connection.h"

namespace tc::transport {

namespace {

// Somebody of our own user at that Unix socket; nobody otherwise.
Fd knock_at(const SocketAddress& door) {
  auto socket = connect_to(door);
  return socket && origin_of(*socket).same_user ? std::move(*socket) : Fd();
}

// The second door of who listens at one of these addresses.
Fd find_second_door(const std::vector<SocketAddress>& addresses) {
  for (const auto& address : addresses) {
    if (!address.is_here()) continue;
    for (const auto& name : {address.text(), address.any_interface(), fmt::format("[::]:{}", address.port())})
      if (Fd door = knock_at(SocketAddress::second_door(name))) return door;
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<Connection>> Network::connect(std::string_view address, ByteView hello) {
  if (address.starts_with(unix_prefix)) {
    TC_ASSIGN(const auto door, SocketAddress::at_path(address.substr(unix_prefix.size())));
    Fd socket = can_use_rings_ ? knock_at(door) : Fd();
    if (!socket) return fail(TC_ERR_DISCONNECTED, "no process of this user listens at {}", address);
    return connect_by_ring(std::move(socket), address, hello);
  }
  TC_ASSIGN(auto found, resolve(address, false));
  if (can_use_rings_ && (options_.choice == Choice::automatic || options_.choice == Choice::shm))
    if (Fd door = find_second_door(found)) return connect_by_ring(std::move(door), address, hello);
  if (options_.choice == Choice::shm)
    return fail(TC_ERR_UNSUPPORTED,
                "no process of this user listens at {} on this host, so no memory can be shared with it", address);
  auto socket = connect_to(found.front());
  if (!socket) return context(fmt::format("connecting to {}", address), std::move(socket).error());
  std::vector<SocketAddress> others(found.begin() + 1, found.end());
  if (fabric_ != nullptr) return fabric_->connect(std::move(*socket), std::string(address), std::move(others), hello);
  return TcpConnection::connect(*this, std::move(*socket), std::string(address), std::move(others), hello);
}

Result<std::unique_ptr<Connection>> Network::connect_by_ring(Fd door, std::string_view address, ByteView hello) {
  return RingConnection::connect(*this, std::move(door), std::string(address), options_.ring_bytes, hello);
}

void Network::on_guest(Guest guest) {
  auto connection = admit(guest);
  if (connection) return events.on_accept(std::move(*connection), guest.greeting.hello);
  events.on_refused(guest.origin.text, connection.error());
  if (say_at_once(guest.socket, encode_refusal(connection.error()))) part_with(std::move(guest.socket), {});
}

Result<std::unique_ptr<SocketConnection>> Network::admit(Guest& guest) {
  const auto& wanted = guest.greeting.transport;
  const bool is_local = local_address(guest.socket).family() == AF_UNIX;
  // Memory is shared with processes of our own user alone, whoever else may connect.
  if (is_local && wanted == RingConnection::name && guest.origin.same_user)
    return RingConnection::accept(*this, guest.socket, guest.origin, guest.greeting, std::move(guest.descriptor));
  if (!is_local && wanted == TcpConnection::name) return TcpConnection::accept(*this, guest.socket, guest.origin);
  if (!is_local && fabric_ != nullptr && wanted.starts_with("ucx"))
    return fabric_->accept(guest.socket, guest.origin, guest.greeting);
  return fail(TC_ERR_UNSUPPORTED, "frames are to travel by '{}', which this node does not do{}", wanted,
              wanted.starts_with("ucx") ? fmt::format("; start it with the option transport={}", wanted) : "");
}

}  // namespace tc::transport
