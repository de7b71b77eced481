// SPDX-License-Identifier: Apache-2.0
//
// Bytes to and from a socket that does not block. Inline, because plain connections call it in each poll.
//
// Thread: the node's.
#pragma once

#include <sys/socket.h>

#include <cerrno>
#include <span>

#include "base/bytes.h"
#include "base/fd.h"

namespace tc::transport {

[[gnu::cold]] inline std::unexpected<Error> lost_socket(int error) {
  return fail(TC_ERR_DISCONNECTED, "{}", system_words(error));
}

// Returns how many bytes the socket took; 0: none now.
inline Result<size_t> send_on(const Fd& socket, ByteView bytes) {
  const auto sent = ::send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  if (sent >= 0) return static_cast<size_t>(sent);
  if (errno == EAGAIN || errno == EINTR) return 0;
  return lost_socket(errno);
}

// Returns how many bytes came; 0: none now. TC_ERR_DISCONNECTED: it ended.
inline Result<size_t> receive_on(const Fd& socket, std::span<std::byte> into) {
  const auto got = ::recv(socket.get(), into.data(), into.size(), MSG_DONTWAIT);
  if (got > 0) return static_cast<size_t>(got);
  if (got == 0) return fail(TC_ERR_DISCONNECTED, "it closed its socket without disconnecting first");
  if (errno == EAGAIN || errno == EINTR) return 0;
  return lost_socket(errno);
}

}  // namespace tc::transport
