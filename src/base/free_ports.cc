// SPDX-License-Identifier: Apache-2.0
#include "base/free_ports.h"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <random>

namespace tc {

namespace {

// Below those that the system gives to whoever asks for any port (32768 and up on Linux): UCX workers ask for several
// each, between our look at a port and its use.
constexpr uint16_t lowest = 10'000, highest = 32'000;
constexpr int most_tries = 2000;

// Holds the port, or -1.
int hold(uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd >= 0 && ::bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0) return fd;
  if (fd >= 0) ::close(fd);
  return -1;
}

}  // namespace

Result<std::vector<std::string>> free_addresses(uint32_t count) {
  std::vector<int> held;  // all at once, so that they differ
  std::vector<std::string> addresses;
  std::random_device random;
  for (int tries = 0; addresses.size() < count && tries < most_tries; ++tries) {
    const auto port = static_cast<uint16_t>(lowest + random() % (highest - lowest));
    const int fd = hold(port);
    if (fd < 0) continue;
    held.push_back(fd);
    addresses.push_back(fmt::format("127.0.0.1:{}", port));
  }
  for (const int fd : held) ::close(fd);
  if (addresses.size() == count) return addresses;
  return fail(TC_ERR_IO, "{} free ports between {} and {} when {} are needed", addresses.size(), lowest, highest,
              count);
}

}  // namespace tc
