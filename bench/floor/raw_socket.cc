// SPDX-License-Identifier: Apache-2.0
#include "floor/raw_socket.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cerrno>
#include <charconv>
#include <cstring>

namespace tc::bench {

namespace {

constexpr std::string_view host = "127.0.0.1:";

sockaddr_in loopback(uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

std::unexpected<Error> failed(const char* what) { return fail(TC_ERR_IO, "{}: {}", what, system_words(errno)); }

}  // namespace

// Nothing waits for more to be sent.
Status RawSocket::make_prompt() {
  const int on = 1;
  if (::setsockopt(fd_.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) != 0) return failed("TCP_NODELAY");
  return {};
}

Result<std::unique_ptr<RawSocket>> RawSocket::listen() {
  Fd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const auto any_port = loopback(0);
  if (!fd || ::bind(fd.get(), reinterpret_cast<const sockaddr*>(&any_port), sizeof any_port) != 0 ||
      ::listen(fd.get(), 1) != 0)
    return failed("listening on 127.0.0.1");
  return std::unique_ptr<RawSocket>(new RawSocket(std::move(fd)));
}

std::string RawSocket::address() const {
  sockaddr_in bound{};
  socklen_t size = sizeof bound;
  (void)::getsockname(fd_.get(), reinterpret_cast<sockaddr*>(&bound), &size);
  return fmt::format("{}{}", host, ntohs(bound.sin_port));
}

Status RawSocket::accept() {
  Fd connected(::accept4(fd_.get(), nullptr, nullptr, SOCK_CLOEXEC));
  if (!connected) return failed("accept");
  fd_ = std::move(connected);
  return make_prompt();
}

Result<std::unique_ptr<RawSocket>> RawSocket::open(const std::string& address) {
  uint16_t port = 0;
  const auto* const end = address.data() + address.size();
  if (!address.starts_with(host) || std::from_chars(address.data() + host.size(), end, port).ptr != end)
    return fail(TC_ERR_INVALID, "'{}' is no address of a raw socket", address);
  Fd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const auto there = loopback(port);
  if (!fd || ::connect(fd.get(), reinterpret_cast<const sockaddr*>(&there), sizeof there) != 0)
    return failed("connecting the raw socket");
  std::unique_ptr<RawSocket> made(new RawSocket(std::move(fd)));
  TC_CHECK(made->make_prompt());
  return made;
}

Status RawSocket::status() const {
  if (error_ == 0) return {};
  return fail(TC_ERR_DISCONNECTED, "the raw socket: {}", error_ < 0 ? "the other end closed" : system_words(error_));
}

Status RawSocket::write(ByteView bytes) noexcept {
  while (!bytes.empty() && error_ == 0) {
    const auto sent = ::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent > 0)
      bytes = bytes.subspan(static_cast<size_t>(sent));
    else if (errno != EAGAIN && errno != EINTR)
      error_ = errno;
  }
  return status();
}

Status RawSocket::read(std::span<std::byte> into) noexcept {
  while (!into.empty() && error_ == 0) {
    const auto got = ::recv(fd_.get(), into.data(), into.size(), MSG_DONTWAIT);
    if (got > 0)
      into = into.subspan(static_cast<size_t>(got));
    else if (got == 0)
      error_ = -1;
    else if (errno != EAGAIN && errno != EINTR)
      error_ = errno;
  }
  return status();
}

void RawSocket::flush() noexcept {
  (void)write(std::as_bytes(std::span(batch_.data(), batched_)));
  batched_ = 0;
}

void RawSocket::poll() noexcept {
  auto* const bytes = reinterpret_cast<std::byte*>(arrived_.data());
  const auto got = ::recv(fd_.get(), bytes + arrived_bytes_, sizeof arrived_ - arrived_bytes_, MSG_DONTWAIT);
  if (got <= 0) {
    if (got == 0)
      error_ = -1;
    else if (errno != EAGAIN && errno != EINTR)
      error_ = errno;
    return;
  }
  arrived_bytes_ += static_cast<size_t>(got);
  const size_t whole = arrived_bytes_ / sizeof(RawCall);
  for (size_t i = 0; i < whole; ++i) raw_table[arrived_[i].header % raw_table.size()](&arrived_[i].payload, &count_);
  arrived_bytes_ %= sizeof(RawCall);
  if (arrived_bytes_ != 0) std::memcpy(bytes, bytes + whole * sizeof(RawCall), arrived_bytes_);
}

}  // namespace tc::bench
