// SPDX-License-Identifier: Apache-2.0
#include "transport/address.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstring>
#include <memory>

namespace tc::transport {

namespace {

using AddressList = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

constexpr std::string_view local_listener_prefix = "threechains/", stream_listener_prefix = "threechains-stream/";

SocketAddress unix_address(std::string_view name, bool abstract) noexcept {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const size_t first = abstract ? 1 : 0;  // an abstract name begins with a zero byte
  std::memcpy(address.sun_path + first, name.data(), name.size());
  const size_t size = offsetof(sockaddr_un, sun_path) + first + name.size() + (abstract ? 0 : 1);
  return SocketAddress::of(reinterpret_cast<const sockaddr*>(&address), static_cast<socklen_t>(size));
}

void without_delay(const Fd& socket, int family) noexcept {
  const int on = 1;
  if (family != AF_UNIX) (void)setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

// `flags`: getaddrinfo()'s.
Result<std::vector<SocketAddress>> addresses_of(const HostAndPort& where, int flags) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV | flags;
  addrinfo* found = nullptr;
  const char* const host = where.host.empty() ? nullptr : where.host.c_str();
  if (const int error = getaddrinfo(host, std::to_string(where.port).c_str(), &hints, &found); error != 0)
    return fail(error == EAI_NONAME || error == EAI_NODATA ? TC_ERR_NOT_FOUND : TC_ERR_IO,
                "the host name '{}' cannot be resolved: {}", where.host,
                error == EAI_SYSTEM ? system_words(errno) : std::string(gai_strerror(error)));
  const AddressList list(found, &freeaddrinfo);
  std::vector<SocketAddress> all;
  for (const auto* one = list.get(); one != nullptr; one = one->ai_next)
    all.push_back(SocketAddress::of(one->ai_addr, one->ai_addrlen));
  return all;
}

}  // namespace

SocketAddress SocketAddress::of(const sockaddr* address, socklen_t size) noexcept {
  SocketAddress made;
  made.size_ = std::min<socklen_t>(size, sizeof made.storage_);
  std::memcpy(&made.storage_, address, made.size_);
  return made;
}

Result<SocketAddress> SocketAddress::at_path(std::string_view path) {
  if (path.empty() || path.size() >= sizeof(sockaddr_un::sun_path))
    return fail(TC_ERR_INVALID, "'unix:{}' is no address: a path is 1 to {} bytes, not {}", path,
                sizeof(sockaddr_un::sun_path) - 1, path.size());
  return unix_address(path, false);
}

SocketAddress SocketAddress::local_listener_of(std::string_view listening, bool shares_memory) noexcept {
  const auto prefix = shares_memory ? local_listener_prefix : stream_listener_prefix;
  char name[sizeof(sockaddr_un::sun_path) - 1];
  const size_t size = std::min(prefix.size() + listening.size(), sizeof name);
  std::memcpy(name, prefix.data(), prefix.size());
  std::memcpy(name + prefix.size(), listening.data(), size - prefix.size());
  return unix_address({name, size}, true);
}

uint16_t SocketAddress::port() const noexcept {
  if (family() == AF_INET) return ntohs(reinterpret_cast<const sockaddr_in*>(&storage_)->sin_port);
  if (family() == AF_INET6) return ntohs(reinterpret_cast<const sockaddr_in6*>(&storage_)->sin6_port);
  return 0;
}

void SocketAddress::set_port(uint16_t port) noexcept {
  if (family() == AF_INET) reinterpret_cast<sockaddr_in*>(&storage_)->sin_port = htons(port);
  if (family() == AF_INET6) reinterpret_cast<sockaddr_in6*>(&storage_)->sin6_port = htons(port);
}

std::string SocketAddress::host() const {
  char host[NI_MAXHOST];
  if (getnameinfo(get(), size_, host, sizeof host, nullptr, 0, NI_NUMERICHOST) != 0) return "unknown";
  return host;
}

std::string SocketAddress::text() const {
  return family() == AF_INET6 ? fmt::format("[{}]:{}", host(), port()) : fmt::format("{}:{}", host(), port());
}

std::string SocketAddress::any_interface() const {
  return fmt::format("{}:{}", family() == AF_INET6 ? "[::]" : "0.0.0.0", port());
}

// A socket can be bound to the addresses of this host, and to no others.
bool SocketAddress::is_here() const noexcept {
  if (family() != AF_INET && family() != AF_INET6) return family() == AF_UNIX;
  SocketAddress any_port = *this;
  any_port.set_port(0);
  const Fd probe(socket(family(), SOCK_DGRAM | SOCK_CLOEXEC, 0));
  return probe && bind(probe.get(), any_port.get(), any_port.size()) == 0;
}

Result<HostAndPort> parse_host_and_port(std::string_view address) {
  const size_t colon = address.rfind(':');
  if (colon == std::string_view::npos || colon + 1 == address.size())
    return fail(TC_ERR_INVALID, "'{}' is no address: it must be HOST:PORT or unix:PATH", address);
  std::string_view host = address.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  const std::string_view port_text = address.substr(colon + 1);
  HostAndPort parsed{std::string(host), 0};
  const char* const port_end = port_text.data() + port_text.size();
  if (const auto [end, error] = std::from_chars(port_text.data(), port_end, parsed.port);  // getaddrinfo() takes 99999
      error != std::errc{} || end != port_end)
    return fail(TC_ERR_INVALID, "'{}' is no address: a port is 0 to 65535, not '{}'", address, port_text);
  return parsed;
}

std::vector<SocketAddress> numeric_addresses(const HostAndPort& where) {
  return addresses_of(where, AI_NUMERICHOST).value_or(std::vector<SocketAddress>());
}

Result<std::vector<SocketAddress>> look_up(const std::string& host) { return addresses_of({host, 0}, 0); }

Result<std::vector<SocketAddress>> resolve(std::string_view address, bool to_listen) {
  TC_ASSIGN(const auto where, parse_host_and_port(address));
  return addresses_of(where, to_listen ? AI_PASSIVE : 0);
}

Result<Fd> take_listener(std::string_view descriptor) {
  int number = -1;
  const auto* const end = descriptor.data() + descriptor.size();
  const auto read = std::from_chars(descriptor.data(), end, number);
  if (read.ec != std::errc{} || read.ptr != end || number <= STDERR_FILENO)
    return fail(TC_ERR_INVALID, "'{}' is no number of a descriptor above 2", descriptor);
  const auto value_of = [&](int option) {
    int value = -1;
    socklen_t size = sizeof value;
    return ::getsockopt(number, SOL_SOCKET, option, &value, &size) == 0 ? value : -1;
  };
  const int domain = value_of(SO_DOMAIN);
  if (domain == -1) return fail(TC_ERR_INVALID, "descriptor {} is no socket: {}", number, system_words(errno));
  if (value_of(SO_TYPE) != SOCK_STREAM || (domain != AF_INET && domain != AF_INET6))
    return fail(TC_ERR_INVALID, "descriptor {} is a socket of family {} and type {} when one of TCP is needed", number,
                domain, value_of(SO_TYPE));
  if (value_of(SO_ACCEPTCONN) != 1)
    return fail(TC_ERR_INVALID, "descriptor {} is a socket that does not listen", number);
  const int flags = ::fcntl(number, F_GETFL);
  if (flags < 0 || ::fcntl(number, F_SETFL, flags | O_NONBLOCK) != 0 || ::fcntl(number, F_SETFD, FD_CLOEXEC) != 0)
    return fail(TC_ERR_IO, "descriptor {}: {}", number, system_words(errno));
  return Fd(number);
}

Result<Fd> listen_at(const SocketAddress& address) {
  Fd fd(socket(address.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  const int on = 1;
  if (!fd || setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
      bind(fd.get(), address.get(), address.size()) != 0 || listen(fd.get(), SOMAXCONN) != 0)
    return fail(TC_ERR_IO, "{}", system_words(errno));
  return fd;
}

Result<Fd> connect_to(const SocketAddress& address) {
  Fd fd(socket(address.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (fd) without_delay(fd, address.family());
  if (!fd || (connect(fd.get(), address.get(), address.size()) != 0 && errno != EINPROGRESS))
    return fail(TC_ERR_IO, "{}", system_words(errno));
  return fd;
}

bool would_block(ssize_t result) noexcept { return result < 0 && (errno == EAGAIN || errno == EINTR); }

int socket_error(const Fd& socket) noexcept {
  int error = 0;
  socklen_t size = sizeof error;
  return getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &size) == 0 ? error : errno;
}

SocketAddress local_address(const Fd& socket) noexcept {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  (void)getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &size);
  return SocketAddress::of(reinterpret_cast<const sockaddr*>(&address), size);
}

SocketAddress peer_address(const Fd& socket) noexcept {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  (void)getpeername(socket.get(), reinterpret_cast<sockaddr*>(&address), &size);
  return SocketAddress::of(reinterpret_cast<const sockaddr*>(&address), size);
}

}  // namespace tc::transport
