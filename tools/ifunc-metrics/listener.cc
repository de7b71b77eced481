// SPDX-License-Identifier: Apache-2.0
#include "ifunc-metrics/listener.h"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <memory>

namespace tc::metrics {
namespace {

constexpr int backlog = 128;

std::string text_of(const Fd& socket) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  char host[NI_MAXHOST] = "", port[NI_MAXSERV] = "";
  if (::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0) return {};
  if (::getnameinfo(reinterpret_cast<sockaddr*>(&address), size, host, sizeof host, port, sizeof port,
                    NI_NUMERICHOST | NI_NUMERICSERV) != 0)
    return {};
  return address.ss_family == AF_INET6 ? fmt::format("[{}]:{}", host, port) : fmt::format("{}:{}", host, port);
}

// Without a socket `errno` has the reason.
Fd listen_at(const addrinfo& where) {
  Fd socket(::socket(where.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int yes = 1;
  // A node that is started again gets its port, though connections to the last one have not been forgotten.
  if (!socket || ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) != 0 ||
      ::bind(socket.get(), where.ai_addr, where.ai_addrlen) != 0 || ::listen(socket.get(), backlog) != 0)
    return {};
  return socket;
}

}  // namespace

Result<Listener> listen_at(const std::string& host, uint16_t port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  if (const int error = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found); error != 0)
    return fail(TC_ERR_INVALID, "there is no host '{}': {}", host, ::gai_strerror(error));
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> all(found, &::freeaddrinfo);
  int why = 0;
  for (const auto* one = all.get(); one != nullptr; one = one->ai_next) {
    if (auto socket = listen_at(*one)) {
      auto address = text_of(socket);
      return Listener{.socket = std::move(socket), .address = std::move(address)};
    }
    if (why == 0) why = errno;
  }
  return fail(TC_ERR_IO, "cannot listen at {}:{}: {}", host, port, system_words(why));
}

}  // namespace tc::metrics
