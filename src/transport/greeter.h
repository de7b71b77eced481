// SPDX-License-Identifier: Apache-2.0
//
// Says one greeting on a socket and hears the other one (greeting.h), without blocking and without reading a byte more.
//
//   the side that connected     say() ... go_on() until it has heard
//   the side that accepted      go_on() until it has heard, then say() ... go_on() until it has said
//
// On a Unix socket (SOCK_SEQPACKET) each message is one packet and may carry a descriptor; on TCP it is a piece of the
// stream. Thread: the node's.
#pragma once

#include <optional>

#include "base/fd.h"
#include "transport/greeting.h"

namespace tc::transport {

class Greeter {
 public:
  enum class Socket : uint8_t { stream, packets };

  explicit Greeter(Socket kind) noexcept : kind_(kind) {}

  // What go_on() sends. `attached`: a descriptor that goes along, on packets; it is duplicated by the kernel.
  void say(Bytes message, int attached = -1);
  // Sends and hears as far as the socket goes. TC_ERR_DISCONNECTED: it ended. Else what is wrong with the peer's message;
  // where that is a refusal, its status and reason.
  Status go_on(const Fd& socket);

  bool has_said() const noexcept { return said_ == out_.size(); }
  bool has_heard() const noexcept { return heard_.has_value(); }
  // EPOLLIN, and EPOLLOUT while there is more to say.
  uint32_t wanted_events() const noexcept;
  // What the peer said, and the descriptor that came along.
  Greeting& heard() noexcept { return *heard_; }
  Fd take_descriptor() noexcept { return std::move(descriptor_); }

 private:
  Status send(const Fd& socket);
  Status hear_stream(const Fd& socket);
  Status hear_packet(const Fd& socket);
  Status understand();

  const Socket kind_;
  Bytes out_;
  size_t said_ = 0;
  int attached_ = -1;
  Bytes in_;
  size_t wanted_ = greeting_head_bytes;
  std::optional<Greeting> heard_;
  Fd descriptor_;
};

// Says a message on a socket on which nothing was said before, so that there is room for all of it.
Status say_at_once(const Fd& socket, ByteView message);

}  // namespace tc::transport
