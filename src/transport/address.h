// SPDX-License-Identifier: Apache-2.0
//
// Addresses: "HOST:PORT" (IPv6 in brackets) for everybody, "unix:PATH" for this host alone; and the sockets to them.
//
// Every listener on HOST:PORT has a second door, a Unix socket whose name follows from the first one's. Processes of the
// same user on this host find each other there and speak through shared memory. The name is an abstract one, so it
// belongs to the network namespace, as the port does, and goes when its process goes.
//
// Thread: any. Nothing here blocks but the look-up of a host's name.
#pragma once

#include <sys/socket.h>

#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "base/result.h"

namespace tc::transport {

class SocketAddress {
 public:
  static SocketAddress of(const sockaddr* address, socklen_t size) noexcept;
  // TC_ERR_INVALID when the path is longer than a socket's may be.
  static Result<SocketAddress> at_path(std::string_view path);
  // The second door of who listens at this "127.0.0.1:7001".
  static SocketAddress second_door(std::string_view listening) noexcept;

  int family() const noexcept { return storage_.ss_family; }
  const sockaddr* get() const noexcept { return reinterpret_cast<const sockaddr*>(&storage_); }
  socklen_t size() const noexcept { return size_; }
  uint16_t port() const noexcept;
  // "127.0.0.1", and "127.0.0.1:7001" or "[::1]:7001"
  std::string host() const;
  std::string text() const;
  // The same port on any interface: "0.0.0.0:7001".
  std::string any_interface() const;
  // Does a connection to it end on this host, in our network namespace?
  bool is_here() const noexcept;

 private:
  sockaddr_storage storage_{};
  socklen_t size_ = 0;
};

inline constexpr std::string_view unix_prefix = "unix:";

// All that "HOST:PORT" stands for, the best first. TC_ERR_INVALID, TC_ERR_NOT_FOUND.
Result<std::vector<SocketAddress>> resolve(std::string_view address, bool to_listen);

// Listens there. TC_ERR_IO.
Result<Fd> listen_at(const SocketAddress& address);
// Starts to connect; when the socket becomes writable, socket_error() says how it ended. TC_ERR_IO.
Result<Fd> connect_to(const SocketAddress& address);
int socket_error(const Fd& socket) noexcept;

// Our end of the socket, and the other one.
SocketAddress local_address(const Fd& socket) noexcept;
SocketAddress peer_address(const Fd& socket) noexcept;

}  // namespace tc::transport
