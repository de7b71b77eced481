// SPDX-License-Identifier: Apache-2.0
#include "common/free_ports.h"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace tc::bench {

Result<std::vector<std::string>> free_addresses(uint32_t count) {
  std::vector<int> sockets;  // all are held at once, so that they differ
  std::vector<std::string> addresses;
  for (uint32_t i = 0; i < count; ++i) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof address;
    auto* const generic = reinterpret_cast<sockaddr*>(&address);
    sockets.push_back(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (::bind(sockets.back(), generic, length) != 0 || ::getsockname(sockets.back(), generic, &length) != 0) break;
    addresses.push_back(fmt::format("127.0.0.1:{}", ntohs(address.sin_port)));
  }
  const int error = errno;
  for (const int socket : sockets) ::close(socket);
  if (addresses.size() == count) return addresses;
  return fail(TC_ERR_IO, "no free port for a server: {}", std::strerror(error));
}

}  // namespace tc::bench
