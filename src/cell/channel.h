// SPDX-License-Identifier: Apache-2.0
//
// Messages between a node and its cell, over two rings: one end of them. A message that is longer than a quarter of the ring
// goes in parts of one length, and is joined before anybody sees it. What does not fit now waits here.
//
// The other side may write to the ring at any time. So a frame's header is loaded once, and its body is copied before it is
// read.
//
// Thread: one at a time.
#pragma once

#include <deque>
#include <optional>

#include "base/bytes.h"
#include "base/result.h"
#include "transport/ring/ring.h"

namespace tc::cell {

class Channel {
 public:
  struct Message {
    uint8_t kind = 0;
    uint32_t number = 0;
    ByteView body;  // valid until the next receive(); it begins at a multiple of 16
  };

  // `socket` wakes the other side, and must outlive the channel. A received message that is longer than `message_bytes` breaks
  // the protocol.
  Channel(transport::RingMemory memory, transport::RingMemory::Side side, int socket, size_t message_bytes);
  Channel(const Channel&) = delete;

  // Sends a message whose body is `head` and, behind it, `tail`. Never waits; may throw std::bad_alloc.
  void send(uint8_t kind, uint32_t number, ByteView head, ByteView tail = {});
  // Goes on with what waits here. True: some of it went.
  bool progress();
  // Does nothing wait?
  bool is_sent() const noexcept { return waiting_.empty(); }

  // The next message. Nothing: none has come whole, or there will be none, because the other side broke a rule: see broken().
  // May throw std::bad_alloc.
  std::optional<Message> receive();
  const std::optional<Error>& broken() const noexcept { return broken_; }
  bool has_frames() const noexcept { return in_.peek() != 0; }

  // Whether the other side has to wake this one. After set_sleeping(true), call barrier() and has_frames() before a sleep.
  void set_sleeping(bool sleeping) noexcept { in_.set_sleeping(sleeping); }
  // The registration of this process, once. False: this kernel has no membarrier.
  static bool can_sleep() noexcept;
  static void barrier() noexcept;

 private:
  struct Waiting {
    uint8_t kind;
    uint32_t number;
    Bytes body;
    size_t sent = 0;
  };
  bool put(uint8_t kind, uint32_t number, ByteView head, ByteView tail) noexcept;
  bool put_some(Waiting& waiting) noexcept;
  std::optional<uint64_t> next_header() noexcept;
  bool takes(const wire::FrameHeader& header);
  bool join(size_t length);
  void wake() noexcept;

  const int socket_;
  const size_t message_bytes_;
  transport::PollState poll_state_;
  transport::FlushList flush_list_{poll_state_};
  transport::RingMemory memory_;
  transport::RingIn in_;
  transport::RingOut out_;
  std::deque<Waiting> waiting_;
  Bytes body_;                // of the message that was received last, or as much of it as has come
  bool is_complete_ = false;  // body_ is that of a message that was given out
  std::optional<Error> broken_;
};

}  // namespace tc::cell
