// SPDX-License-Identifier: Apache-2.0
//
// A connected socket as a stream of bytes, plain or encrypted.
//
// Thread: the node's.
#pragma once

#include <sys/socket.h>

#include <cerrno>
#include <span>

#include "base/bytes.h"
#include "base/fd.h"
#include "trust/tls.h"

namespace tc::transport {

// Bytes to and from a socket that does not block. Inline, because plain connections call it in each poll.
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

// A connected socket as a stream of bytes: plain, or encrypted by a session (trust/tls.h). Greetings, frames over TCP and
// UCX's closing record are sent through it.
//
// Thread: the node's. No call blocks.
class SocketStream {
 public:
  SocketStream() = default;
  explicit SocketStream(Fd socket) noexcept : socket_(std::move(socket)) {}

  const Fd& socket() const noexcept { return socket_; }
  // From now on, or until take_session(), bytes pass through the session.
  void set_session(std::unique_ptr<trust::TlsSession> session) noexcept { session_ = std::move(session); }
  std::unique_ptr<trust::TlsSession> take_session() noexcept { return std::move(session_); }
  trust::TlsSession* session() const noexcept { return session_.get(); }
  bool is_encrypted() const noexcept { return session_ != nullptr; }

  // Returns how many bytes were taken; 0: none now. Encrypted bytes may be taken and not have left: has_unsent().
  Result<size_t> send(ByteView bytes);
  // Returns how many bytes came; 0: none now. TC_ERR_DISCONNECTED: it ended. The socket does not become readable for
  // bytes that has_more() tells of. There are none after a call with room for least_room.
  Result<size_t> receive(std::span<std::byte> into);
  static constexpr size_t least_room = 32 * 1024;
  bool has_more() const noexcept { return session_ != nullptr && session_->has_more(); }

  // Encrypted bytes that the socket has not taken: call push() when it takes more.
  bool has_unsent() const noexcept { return session_ != nullptr && !session_->to_send().empty(); }
  Status push();
  // Encrypted bytes of the peer, into the session. Returns how many; 0: none now.
  Result<size_t> pull(size_t most);

  // A whole message, where nothing or little was sent before: the socket's buffer has room for all of it.
  Status send_at_once(ByteView message);
  // Ends the stream: returns all that is to be sent before the socket is shut down, beginning with what has_unsent()
  // tells of. `unsent`: what send() did not take.
  Bytes finish(Bytes unsent);
  Fd take_socket() noexcept {
    session_.reset();
    return std::move(socket_);
  }

 private:
  Fd socket_;
  std::unique_ptr<trust::TlsSession> session_;  // null: plain
};

}  // namespace tc::transport
