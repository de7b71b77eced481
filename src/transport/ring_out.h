// SPDX-License-Identifier: Apache-2.0
//
// The way out of a connection: frames written straight into the peer's ring where its memory could be mapped,
// in batches otherwise. The first frame of a turn is visible at once; those behind it become so together, when there
// are enough of them, with flush(), or with the next progress().
//
// The peer may write anything into the control area. It can only hurt its own ring with that: a position that
// goes backwards or past what was written is ignored.
#pragma once

#include "transport/batch_out.h"
#include "transport/ring.h"

namespace tc::transport {

class RingOut : public BatchOut {
 public:
  explicit RingOut(FlushList& list) : BatchOut(list) {}
  RingOut(FlushList& list, Bypass& bypass) : BatchOut(list, bypass) {}

  // Frames go into this ring from now on; it is the peer's, mapped here until shut_ring().
  void open_ring(const RingView& ring) noexcept;
  // Refuses from now on, and touches the ring no more.
  void shut_ring() noexcept;
  // Told by what only a ring sets, as ring_ lies on another cache line than a batch's cursor.
  bool uses_ring() const noexcept { return turn_ != &no_turn; }

  void flush() noexcept override;
  bool credit(uint64_t consumed) noexcept override;

 protected:
  std::byte* make_room(size_t length) noexcept override;
  void attend() noexcept override;
  // The peer sleeps: send it something that wakes it.
  virtual void wake_peer() noexcept = 0;

 private:
  uint64_t position() const noexcept { return lap_ + static_cast<uint64_t>(cursor_ - ring_.data); }
  void look_how_far() noexcept;
  void set_end() noexcept;
  // Makes frames that are held back visible.
  void publish() noexcept;
  void hold_from_here() noexcept;
  void wake_if_asleep() noexcept;
  void stop_holding() noexcept { held_at_ = held_end_ = nullptr; }

  RingView ring_;
  uint64_t lap_ = 0;
  uint64_t consumed_ = 0;  // as far as we believe the peer
  uint64_t credited_ = 0;
};

}  // namespace tc::transport
