// SPDX-License-Identifier: Apache-2.0
//
// The streams that have committed frames which their peers do not see yet. A stream adds itself when it holds frames
// back; the transport flushes all of them at the end of a poll.
//
// Thread: the node's. Nothing here allocates: the list is linked through the streams.
#pragma once

#include "transport/out_stream.h"
#include "transport/poll_state.h"

namespace tc::transport {

class FlushList {
 public:
  explicit FlushList(PollState& poll_state) noexcept : poll_state_(poll_state) {}
  void add(OutStream& stream) noexcept {
    if (stream.is_listed_) return;
    stream.is_listed_ = true;
    stream.next_unflushed_ = first_;
    first_ = &stream;
    poll_state_.urgent = true;
  }
  void remove(OutStream& stream) noexcept {
    if (!stream.is_listed_) return;
    OutStream** link = &first_;
    while (*link != &stream) link = &(*link)->next_unflushed_;
    *link = stream.next_unflushed_;
    stream.is_listed_ = false;
  }
  bool empty() const noexcept { return first_ == nullptr; }
  // Flushes each; a stream that must wait may add itself again.
  void flush_all() noexcept {
    OutStream* stream = first_;
    first_ = nullptr;
    while (stream != nullptr) {
      OutStream* const next = stream->next_unflushed_;
      stream->is_listed_ = false;
      stream->flush();
      stream = next;
    }
  }
  PollState& poll_state() noexcept { return poll_state_; }

 private:
  OutStream* first_ = nullptr;
  PollState& poll_state_;
};

}  // namespace tc::transport
