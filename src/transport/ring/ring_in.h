// SPDX-License-Identifier: Apache-2.0
//
// Frames that a peer writes into memory of ours.
//
// The ring's bytes may change at any time under a hostile peer: each header is loaded once, every length is
// checked against our own position, and nothing that we rely on is read back from the ring.
//
// Thread: the node's.
#pragma once

#include "transport/ring/ring.h"
#include "transport/stream.h"

namespace tc::transport {

class RingIn final : public InStream {
 public:
  // Makes fresh memory into an empty ring.
  static void start(const RingView& ring) noexcept;

  // Frames come by this ring from now on; its memory must stay until shut().
  void open(const RingView& ring) noexcept;
  // Nothing more is read, and the ring's memory may go.
  void shut() noexcept;

  bool refill() noexcept override;
  void release() noexcept override;

  // The sleep flag that senders look at.
  void set_sleeping(bool sleeping) noexcept;
  // Bytes of frames taken off so far.
  uint64_t consumed() const noexcept { return position() - ring_start; }

 private:
  bool is_open() const noexcept { return ring_.data != nullptr; }
  uint64_t position() const noexcept {
    return is_open() ? lap_ + static_cast<uint64_t>(cursor_ - ring_.data) : lap_ + ring_start;
  }

  RingView ring_;
  uint64_t lap_ = 0;        // the linear position of offset 0 in this lap; once shut, of what was consumed
  uint64_t published_ = 0;  // the last value of RingControl::consumed
};

}  // namespace tc::transport
