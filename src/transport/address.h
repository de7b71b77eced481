// SPDX-License-Identifier: Apache-2.0
//
// Addresses: "HOST:PORT" (IPv6 in brackets), and "unix:PATH" on this host; and the sockets to them.
//
// Every listener on HOST:PORT has a local listener beside it: a Unix socket with a name that follows from the address.
// Processes of the same user on this host find each other there, to share memory. The name is abstract (it is no file),
// so it belongs to the network namespace, as the port does, and disappears with the process. A node that cannot share
// memory has another name there: peers send it a stream of bytes.
//
// Thread: any. Nothing blocks but resolve() and look_up(), which wait for name servers.
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
  // The local listener beside the one at "127.0.0.1:7001". `shares_memory`: the node there can.
  static SocketAddress local_listener_of(std::string_view listening, bool shares_memory = true) noexcept;

  int family() const noexcept { return storage_.ss_family; }
  const sockaddr* get() const noexcept { return reinterpret_cast<const sockaddr*>(&storage_); }
  socklen_t size() const noexcept { return size_; }
  uint16_t port() const noexcept;
  void set_port(uint16_t port) noexcept;
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
// Of a listening socket that the process was given: "fd:3".
inline constexpr std::string_view descriptor_prefix = "fd:";

// "HOST:PORT", taken apart. An empty host is any interface to listen, and this host to connect.
struct HostAndPort {
  std::string host;  // without brackets
  uint16_t port = 0;
};
// TC_ERR_INVALID.
Result<HostAndPort> parse_host_and_port(std::string_view address);
// What a host that is written as a number stands for, to connect to it. Empty: it is a name.
std::vector<SocketAddress> numeric_addresses(const HostAndPort& where);
// All addresses of a host, the best first, with port 0. Waits for name servers: ten seconds for one that is silent.
// TC_ERR_NOT_FOUND: there is no such name. TC_ERR_IO: nobody could tell.
Result<std::vector<SocketAddress>> look_up(const std::string& host);
// All that "HOST:PORT" stands for, the best first. Waits as look_up() does. TC_ERR_INVALID, TC_ERR_NOT_FOUND, TC_ERR_IO.
Result<std::vector<SocketAddress>> resolve(std::string_view address, bool to_listen);

// The listening TCP socket that this process has as descriptor "3"; whoever takes it owns it. TC_ERR_INVALID: it is none.
Result<Fd> take_listener(std::string_view descriptor);
// Listens there. TC_ERR_IO.
Result<Fd> listen_at(const SocketAddress& address);
// Starts to connect; when the socket becomes writable, socket_error() says how it ended. TC_ERR_IO.
Result<Fd> connect_to(const SocketAddress& address);
int socket_error(const Fd& socket) noexcept;
// Is this the result of a system call on a non-blocking socket that has nothing to do now?
bool would_block(ssize_t result) noexcept;

// Our end of the socket, and the other one.
SocketAddress local_address(const Fd& socket) noexcept;
SocketAddress peer_address(const Fd& socket) noexcept;

}  // namespace tc::transport
