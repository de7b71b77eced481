// SPDX-License-Identifier: Apache-2.0
//
// Says one greeting on a socket and hears the other one (greeting.h), without blocking and without reading a byte more.
//
//   the side that connected     say() ... go_on() until it has heard
//   the side that accepted      go_on() until it has heard, then say() ... go_on() until it has said
//
// On a Unix socket a message may carry a descriptor. Thread: the node's.
#pragma once

#include <optional>

#include "base/fd.h"
#include "transport/greeting.h"

namespace tc::transport {

class Greeter {
 public:
  // What go_on() sends. `attached`: a descriptor that goes along; the kernel duplicates it.
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
  Status hear(const Fd& socket);
  Result<size_t> receive(const Fd& socket, std::span<std::byte> into);

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
