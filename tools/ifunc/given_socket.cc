// SPDX-License-Identifier: Apache-2.0
#include "ifunc/given_socket.h"

#include <fcntl.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>

namespace tc::command {

namespace {

// As systemd counts: behind the three standard descriptors.
constexpr int first_given = 3;
constexpr int most_given = 1024;

std::string value_of(const char* variable) {
  const char* const value = std::getenv(variable);
  return value != nullptr ? value : "";
}

Result<int> number_in(const char* variable, const std::string& text) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc{} && end == text.data() + text.size() && number >= 0) return number;
  return fail(TC_ERR_INVALID, "{} is '{}' when it is a number", variable, text);
}

}  // namespace

Result<std::optional<int>> take_given_socket() {
  const auto process = value_of("LISTEN_PID"), count_text = value_of("LISTEN_FDS"), names = value_of("LISTEN_FDNAMES");
  for (const char* const variable : {"LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"}) ::unsetenv(variable);
  // A process that was started by the one that they were meant for.
  if (count_text.empty() || process != std::to_string(::getpid())) return std::nullopt;
  TC_ASSIGN(const int count, number_in("LISTEN_FDS", count_text));
  if (count == 0) return std::nullopt;
  for (int i = 0; i < std::min(count, most_given); ++i) (void)::fcntl(first_given + i, F_SETFD, FD_CLOEXEC);
  if (count > 1)
    return fail(TC_ERR_INVALID, "{} sockets were given (LISTEN_FDS{}{}) when a node takes one", count,
                names.empty() ? "" : ": ", names);
  return first_given;
}

Status keep_for_children(int socket) {
  if (::fcntl(socket, F_SETFD, 0) == 0) return {};
  return fail(TC_ERR_INVALID, "the descriptor {} that was given (LISTEN_FDS): {}", socket, std::strerror(errno));
}

std::string address_of(int socket) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  auto* const plain = reinterpret_cast<sockaddr*>(&address);
  char host[NI_MAXHOST], port[NI_MAXSERV];
  // getnameinfo() has a name for a socket of AF_UNIX as well.
  const auto is_internet = [&] { return address.ss_family == AF_INET || address.ss_family == AF_INET6; };
  if (::getsockname(socket, plain, &size) != 0 || !is_internet() ||
      ::getnameinfo(plain, size, host, sizeof host, port, sizeof port, NI_NUMERICHOST | NI_NUMERICSERV) != 0)
    return "";
  const bool has_colons = address.ss_family == AF_INET6;
  return fmt::format("{}{}{}:{}", has_colons ? "[" : "", host, has_colons ? "]" : "", port);
}

}  // namespace tc::command
