// SPDX-License-Identifier: Apache-2.0
//
// Frames that a peer writes into a ring in shared memory.
//
// A hostile peer may change the ring's bytes at any time. So each header is loaded once, every length is checked
// against our own position, and no state that we depend on is read back from the ring.
//
// Thread: the node's.
#pragma once

#include "transport/in_stream.h"
#include "transport/ring/ring.h"

namespace tc::transport {

class RingIn final : public InStream {
 public:
  // Turns new memory into an empty ring.
  static void start(const RingView& ring) noexcept;

  // Reads from this ring from now on; its memory must stay until shut().
  void open(const RingView& ring) noexcept;
  // Reads nothing more; the memory may be unmapped.
  void shut() noexcept;

  bool refill() noexcept override;
  void release() noexcept override;

  // Sets the flag that senders check after each frame.
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
