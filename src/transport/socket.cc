// SPDX-License-Identifier: Apache-2.0
#include "transport/socket.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <charconv>
#include <memory>
#include <system_error>

namespace tc::transport {

namespace {

using AddressList = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

Result<AddressList> look_up(std::string_view address, int flags) {
  const size_t colon = address.rfind(':');
  if (colon == std::string_view::npos || colon + 1 == address.size())
    return fail(TC_ERR_INVALID, "'{}' is no address: it wants to be HOST:PORT", address);
  std::string_view host = address.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  const std::string host_text(host), port_text(address.substr(colon + 1));
  uint16_t port = 0;  // the system's own look-up takes 99999 for 34463
  if (const auto [end, error] = std::from_chars(port_text.data(), port_text.data() + port_text.size(), port);
      error != std::errc{} || *end != '\0')
    return fail(TC_ERR_INVALID, "'{}' is no address: a port is 0 to 65535, not '{}'", address, port_text);
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  if (const int error = getaddrinfo(host.empty() ? nullptr : host_text.c_str(), port_text.c_str(), &hints, &found);
      error != 0)
    return fail(error == EAI_NONAME ? TC_ERR_NOT_FOUND : TC_ERR_INVALID, "'{}' is no address: {}", address,
                gai_strerror(error));
  return AddressList(found, &freeaddrinfo);
}

Fd open_socket(const addrinfo& where) {
  Fd fd(socket(where.ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  const int on = 1;
  if (fd) (void)setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return fd;
}

std::string name_of(const sockaddr_storage& address, socklen_t size) {
  char host[NI_MAXHOST], port[NI_MAXSERV];
  if (getnameinfo(reinterpret_cast<const sockaddr*>(&address), size, host, sizeof host, port, sizeof port,
                  NI_NUMERICHOST | NI_NUMERICSERV) != 0)
    return "unknown";
  return address.ss_family == AF_INET6 ? fmt::format("[{}]:{}", host, port) : fmt::format("{}:{}", host, port);
}

}  // namespace

void Fd::reset() noexcept {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

std::string system_words(int error) { return std::system_category().message(error); }

Result<Fd> listen_socket(std::string_view address) {
  TC_ASSIGN(const AddressList list, look_up(address, AI_PASSIVE));
  Fd fd = open_socket(*list);
  const int on = 1;
  if (!fd || setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
      bind(fd.get(), list->ai_addr, list->ai_addrlen) != 0 || listen(fd.get(), SOMAXCONN) != 0)
    return fail(TC_ERR_IO, "listening at {}: {}", address, system_words(errno));
  return fd;
}

Result<Fd> connect_socket(std::string_view address) {
  TC_ASSIGN(const AddressList list, look_up(address, 0));
  Fd fd = open_socket(*list);
  if (!fd || (connect(fd.get(), list->ai_addr, list->ai_addrlen) != 0 && errno != EINPROGRESS))
    return fail(TC_ERR_IO, "connecting to {}: {}", address, system_words(errno));
  return fd;
}

Fd accept_socket(const Fd& listener) noexcept {
  Fd fd(accept4(listener.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  const int on = 1;
  if (fd) (void)setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return fd;
}

int socket_error(const Fd& socket) noexcept {
  int error = 0;
  socklen_t size = sizeof error;
  return getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &size) == 0 ? error : errno;
}

std::string local_name(const Fd& socket) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  if (getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0) return "unknown";
  return name_of(address, size);
}

std::string remote_name(const Fd& socket) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  if (getpeername(socket.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0) return "unknown";
  return name_of(address, size);
}

}  // namespace tc::transport
