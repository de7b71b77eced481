// SPDX-License-Identifier: Apache-2.0
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

#include "floor/raw_socket.h"

namespace tc::bench {

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
