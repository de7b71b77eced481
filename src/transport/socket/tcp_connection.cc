// SPDX-License-Identifier: Apache-2.0
#include "transport/socket/tcp_connection.h"

#include <cerrno>

namespace tc::transport {

namespace {

constexpr uint32_t reading = EPOLLIN | EPOLLRDHUP;

std::unexpected<Error> lost(int error) { return fail(TC_ERR_DISCONNECTED, "{}", system_words(error)); }

}  // namespace

TcpConnection::TcpConnection(Hub& hub, Fd socket, std::string address, std::vector<SocketAddress> others)
    : SocketConnection(hub, std::move(socket), std::move(address), std::move(others), Greeter::Socket::stream),
      out_(hub.flush_list, *this, *this) {}

TcpConnection::TcpConnection(Hub& hub, Fd socket, Origin origin)
    : SocketConnection(hub, std::move(socket), std::move(origin)), out_(hub.flush_list, *this, *this) {}

Result<std::unique_ptr<TcpConnection>> TcpConnection::connect(Hub& hub, Fd socket, std::string address,
                                                              std::vector<SocketAddress> others, ByteView hello) {
  Greeting greeting{std::string(name), {}, Bytes(hello.begin(), hello.end())};
  std::unique_ptr<TcpConnection> made(new TcpConnection(hub, std::move(socket), std::move(address), std::move(others)));
  TC_CHECK(made->start(encode_greeting(greeting)));
  return made;
}

Result<std::unique_ptr<TcpConnection>> TcpConnection::accept(Hub& hub, Fd& socket, const Origin& origin) {
  std::unique_ptr<TcpConnection> made(new TcpConnection(hub, std::move(socket), origin));
  TC_CHECK(made->start());
  return made;
}

Greeting TcpConnection::answer() const { return {std::string(name), {}, {}}; }

Status TcpConnection::open_streams() {
  in_.open();
  out_.open();
  watch(reading);
  return {};
}

void TcpConnection::shut_streams() noexcept {
  in_.shut();
  out_.shut();
}

Bytes TcpConnection::unsent() { return {out_.unsent().begin(), out_.unsent().end()}; }

void TcpConnection::on_socket(uint32_t events) {
  if ((events & EPOLLOUT) != 0) {
    watch(reading);
    out_.on_channel_room();
  }
  if (is_open()) take_in();
}

bool TcpConnection::poll() noexcept {
  try {
    return is_open() && take_in();
  } catch (const std::exception& problem) {
    lose(Error{TC_ERR_NO_MEMORY, problem.what()});
    return true;
  }
}

// What was received before the end is told before the end is.
bool TcpConnection::take_in() {
  if (!in_.has_room()) return false;  // its owner is behind
  auto got = in_.fill(*this);
  if (!got) {
    lose(std::move(got).error());
    return true;
  }
  if (*got != 0) deliver_frames();
  return *got != 0;
}

Result<size_t> TcpConnection::send(ByteView bytes) {
  const auto sent = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  if (sent >= 0) return static_cast<size_t>(sent);
  if (errno == EAGAIN || errno == EINTR) return 0;
  return lost(errno);
}

Result<size_t> TcpConnection::receive(std::span<std::byte> into) {
  const auto got = ::recv(socket_.get(), into.data(), into.size(), MSG_DONTWAIT);
  if (got > 0) return static_cast<size_t>(got);
  if (got == 0) return fail(TC_ERR_DISCONNECTED, "it ended without a word");
  if (errno == EAGAIN || errno == EINTR) return 0;
  return lost(errno);
}

void TcpConnection::on_channel_full() noexcept { watch(reading | EPOLLOUT); }

}  // namespace tc::transport
