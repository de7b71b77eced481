// SPDX-License-Identifier: Apache-2.0
//
// The way in of a connection: frames that a peer writes into our ring, or sends in batches. Which of the two, the
// peer decides and says; until then it is batches.
//
// The ring's bytes may change at any time under a hostile peer: each header is loaded once, every length is
// checked against our own position, and nothing that we rely on is read back from the ring.
#pragma once

#include "transport/batch_in.h"
#include "transport/ring.h"

namespace tc::transport {

class RingIn : public BatchIn {
 public:
  RingIn(size_t batch_limit, size_t window) : BatchIn(batch_limit, window) {}
  RingIn(size_t batch_limit, size_t window, Bypass& bypass) : BatchIn(batch_limit, window, bypass) {}

  // Frames come by this ring from now on. `ring` is ours, zeroed by start(), and must outlive the stream.
  void use_ring(const RingView& ring) noexcept;
  // Makes fresh memory into an empty ring.
  static void start(const RingView& ring, uint64_t nonce) noexcept;
  // Nothing more comes, and the ring's memory may go.
  void leave_ring() noexcept;
  // Told by what only a ring sets, as ring_ lies on another cache line than a batch's cursor.
  bool uses_ring() const noexcept { return dry_at_zero_; }

  bool refill() noexcept override;
  void release() noexcept override;
  uint64_t consumed() const noexcept override;
  bool broken() const noexcept override { return broken_; }

  // The sleep flag that senders look at.
  void set_sleeping(bool sleeping) noexcept;

 private:
  uint64_t position() const noexcept { return lap_ + static_cast<uint64_t>(cursor_ - ring_.data); }

  RingView ring_;
  uint64_t lap_ = 0;        // the linear position of offset 0 in this lap
  uint64_t published_ = 0;  // the last value of RingControl::consumed
  bool left_ = false;
  bool broken_ = false;
  alignas(16) std::byte nothing_[8] = {};  // where a stream points that was broken or left
};

}  // namespace tc::transport
