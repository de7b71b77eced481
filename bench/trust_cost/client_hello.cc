// SPDX-License-Identifier: Apache-2.0
#include "trust_cost/client_hello.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <thread>

#include "base/fd.h"
#include "common/node.h"

namespace tc::bench {

namespace {

constexpr int patience_ms = 200;
constexpr std::byte handshake_record{0x16};

sockaddr_in loopback(uint16_t port) noexcept {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

std::unexpected<Error> failed(const char* what) { return fail(TC_ERR_IO, "{}: {}", what, system_words(errno)); }

Result<uint16_t> port_of(const std::string& address) {
  uint16_t port = 0;
  const auto* const end = address.data() + address.size();
  const auto* const digits = address.data() + address.rfind(':') + 1;
  if (std::from_chars(digits, end, port).ptr != end) return fail(TC_ERR_INVALID, "'{}' has no port", address);
  return port;
}

bool readable(const Fd& socket) noexcept {
  pollfd waiting{socket.get(), POLLIN, 0};
  return ::poll(&waiting, 1, patience_ms) == 1;
}

// One connection; whether it was answered by a record of a handshake.
Result<bool> half_handshake(const sockaddr_in& address, ByteView hello) {
  const Fd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const linger reset{1, 0};  // leaves no port waiting behind
  if (!socket || ::setsockopt(socket.get(), SOL_SOCKET, SO_LINGER, &reset, sizeof reset) != 0)
    return failed("a socket of the flood");
  if (::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    return failed("connecting the flood");
  std::byte first{};
  return ::send(socket.get(), hello.data(), hello.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(hello.size()) &&
         readable(socket) && ::recv(socket.get(), &first, 1, 0) == 1 && first == handshake_record;
}

}  // namespace

Result<Bytes> record_client_hello() {
  const Fd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  auto address = loopback(0);
  socklen_t size = sizeof address;
  if (!listener || ::bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), size) != 0 ||
      ::listen(listener.get(), 1) != 0 ||
      ::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0)
    return failed("a listener for the first bytes of a handshake");
  TC_ASSIGN(const auto transport, BenchTransport::parse("tls"));
  TC_ASSIGN(auto node, make_node(transport, {{"log", "off"}}));
  std::thread connecting([&] {
    (void)attempt([&] {
      (void)node.connect(fmt::format("127.0.0.1:{}", ntohs(address.sin_port)), threechains::milliseconds(2000));
    });
  });
  Bytes hello(8192);
  ssize_t got = -1;
  if (readable(listener)) {
    const Fd socket(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (socket && readable(socket)) got = ::recv(socket.get(), hello.data(), hello.size(), 0);
  }
  connecting.join();
  if (got <= 0 || hello[0] != handshake_record)
    return fail(TC_ERR_INTERNAL, "a node that connects does not begin with a handshake");
  hello.resize(static_cast<size_t>(got));
  return hello;
}

Status flood(const std::string& address, ByteView hello, Deadline deadline, FloodCounts& counts) {
  TC_ASSIGN(const auto port, port_of(address));
  while (!deadline.passed()) {
    TC_ASSIGN(const bool answered, half_handshake(loopback(port), hello));
    (answered ? counts.answered : counts.refused).fetch_add(1, std::memory_order_relaxed);
  }
  return {};
}

}  // namespace tc::bench
