// SPDX-License-Identifier: Apache-2.0
//
// Frames written straight into a ring that a peer reads. The first frame of a poll is visible at once. Those behind it
// become visible together, as a batch: when there is 1 KiB of them, with flush(), or with the next progress().
//
// The peer may write anything into the control area. It can only harm its own ring: a position that goes backwards, or
// past what was written, is ignored.
//
// Thread: the node's.
#pragma once

#include "transport/flush_list.h"
#include "transport/ring/ring.h"

namespace tc::transport {

class RingOut final : public OutStream {
 public:
  // Wakes a sleeping reader.
  class Doorbell {
   public:
    virtual void ring() noexcept = 0;

   protected:
    ~Doorbell() = default;
  };

  RingOut(FlushList& list, Doorbell& doorbell) noexcept;
  ~RingOut() override { list_.remove(*this); }

  // Writes frames into this ring from now on; its memory must stay until shut().
  void open(const RingView& ring) noexcept;
  // Grants nothing from now on, and accesses the ring no more.
  void shut() noexcept;

  void flush() noexcept override;

 private:
  std::byte* make_room(size_t length) noexcept override;
  void slow_commit() noexcept override;
  bool is_open() const noexcept { return ring_.data != nullptr; }
  uint64_t position() const noexcept { return lap_ + static_cast<uint64_t>(cursor_ - ring_.data); }
  void update_consumed() noexcept;
  void set_end() noexcept;
  // Makes the frames of the batch visible.
  void publish() noexcept;
  void start_batch() noexcept;
  void wake_reader() noexcept;
  void end_batch() noexcept { batch_at_ = batch_end_ = nullptr; }

  FlushList& list_;
  Doorbell& doorbell_;
  RingView ring_;
  uint64_t lap_ = 0;
  uint64_t consumed_ = 0;  // the last plausible value of RingControl::consumed
};

}  // namespace tc::transport
