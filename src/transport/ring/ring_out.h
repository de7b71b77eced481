// SPDX-License-Identifier: Apache-2.0
//
// Frames written straight into a ring that a peer reads. The first frame of a turn is visible at once; those behind it
// become so together, when there are enough of them, with flush(), or with the next progress().
//
// The peer may write anything into the control area. It can only hurt its own ring with that: a position that
// goes backwards or past what was written is ignored.
//
// Thread: the node's.
#pragma once

#include "transport/ring/ring.h"
#include "transport/stream.h"

namespace tc::transport {

class RingOut final : public OutStream {
 public:
  // The reader sleeps: send it something that wakes it.
  class Doorbell {
   public:
    virtual void ring() noexcept = 0;

   protected:
    ~Doorbell() = default;
  };

  RingOut(FlushList& list, Doorbell& doorbell) noexcept;
  ~RingOut() override { list_.remove(*this); }

  // Frames go into this ring from now on; its memory must stay until shut().
  void open(const RingView& ring) noexcept;
  // Refuses from now on, and touches the ring no more.
  void shut() noexcept;

  void flush() noexcept override;

 private:
  std::byte* make_room(size_t length) noexcept override;
  void attend() noexcept override;
  bool is_open() const noexcept { return ring_.data != nullptr; }
  uint64_t position() const noexcept { return lap_ + static_cast<uint64_t>(cursor_ - ring_.data); }
  void look_how_far() noexcept;
  void set_end() noexcept;
  // Makes frames that are held back visible.
  void publish() noexcept;
  void hold_from_here() noexcept;
  void wake_if_asleep() noexcept;
  void stop_holding() noexcept { held_at_ = held_end_ = nullptr; }

  FlushList& list_;
  Doorbell& doorbell_;
  RingView ring_;
  uint64_t lap_ = 0;
  uint64_t consumed_ = 0;  // as far as we believe the peer
};

}  // namespace tc::transport
