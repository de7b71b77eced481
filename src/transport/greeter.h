// SPDX-License-Identifier: Apache-2.0
//
// Sends one greeting on a stream and receives the other one (greeting.h). It does not block, and it reads no byte more.
//
//   the side that connected     queue(), then progress() until has_received()
//   the side that accepted      progress() until has_received(), then SocketStream::send_at_once()
//
// On a Unix socket a message may carry a descriptor.
//
// Thread: the node's.
#pragma once

#include <optional>

#include "transport/greeting.h"
#include "transport/socket_stream.h"

namespace tc::transport {

class Greeter {
 public:
  // What progress() sends. `attached`: a descriptor to send with it; the kernel duplicates it.
  void queue(Bytes message, int attached = -1);
  // Sends and receives what the socket takes and has. TC_ERR_DISCONNECTED: it ended. Other errors say what is wrong
  // with the peer's message. A refusal is an error with the peer's status and reason.
  Status progress(SocketStream& stream);

  bool has_sent() const noexcept { return sent_ == out_.size(); }
  bool has_received() const noexcept { return received_.has_value(); }
  // EPOLLIN, and EPOLLOUT while there is more to send.
  uint32_t wanted_events() const noexcept;
  // The peer's greeting, and the descriptor that came with it.
  Greeting& received() noexcept { return *received_; }
  Fd take_descriptor() noexcept { return std::move(descriptor_); }

 private:
  Status send_some(SocketStream& stream);
  Status send_with_descriptor(const Fd& socket);
  Status receive_message(SocketStream& stream);
  Result<size_t> receive_with_descriptor(const Fd& socket, std::span<std::byte> into);

  Bytes out_;
  size_t sent_ = 0;
  int attached_ = -1;
  Bytes in_;
  size_t expected_bytes_ = greeting_head_bytes;
  std::optional<Greeting> received_;
  Fd descriptor_;
};

}  // namespace tc::transport
