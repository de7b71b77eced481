// SPDX-License-Identifier: Apache-2.0
//
// The first messages on a socket. These words are used for the beginning of a connection:
//
//     Greeting      the bytes that each side sends first
//     Greeter       sends our greeting and receives the peer's
//     Handshake     the TLS procedure before the greetings, on encrypted connections (handshake.h)
//     PendingPeer   a peer that we accepted and that has not greeted yet (network/admission.h)
//     GreetedPeer   a peer whose greeting is complete
//     HELLO         the node's part of a greeting, which the transport does not read (wire/hello.h)
//
// Thread: the node's.
#pragma once

#include <optional>
#include <string>

#include "base/bytes.h"
#include "transport/socket_stream.h"

namespace tc::transport {

// Each side sends one message, beginning with the side that connected. Little-endian:
//
//     u32 magic "TCN1" | u8 version | u8 kind | u16 zero | u32 size of what follows
//
//     kind 1, greeting:  str8 transport | u16 size, details for the transport | the node's HELLO (wire/hello.h)
//     kind 2, refusal:   u32 status | str16 reason; the connection ends behind it
//
// A refusal is laid out alike in all versions, so that a peer of another version can read the reason.
//
// Thread: any.
inline constexpr uint8_t greeting_version = 1;
inline constexpr size_t greeting_head_bytes = 12;
// Stops an unauthenticated peer from making us keep megabytes. UCX's worker addresses are the longest part.
inline constexpr size_t max_greeting_bytes = 16 * 1024;

struct Greeting {
  std::string transport;  // that the sender wants: "shm", "tcp", ...
  Bytes details;          // that this transport needs
  Bytes hello;            // of the node (wire/hello.h), opaque here
};

Bytes encode_greeting(const Greeting& greeting);
Bytes encode_refusal(const Error& why);

// How many bytes follow a head. TC_ERR_MALFORMED: the peer is no Three-Chains node. TC_ERR_VERSION, TC_ERR_TOO_LARGE.
Result<size_t> decode_greeting_head(ByteView head);
// `message`: head and what follows it. A refusal is an error: the peer's status and reason.
Result<Greeting> decode_greeting(ByteView message);

// Sends one greeting on a stream and receives the other one. It does not block, and it reads no byte more.
//
//   the side that connected     queue(), then progress() until has_received()
//   the side that accepted      progress() until has_received(), then SocketStream::send_at_once()
//
// On a Unix socket a message may carry a descriptor.
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
