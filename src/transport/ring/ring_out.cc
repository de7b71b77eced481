// SPDX-License-Identifier: Apache-2.0
#include "transport/ring/ring_out.h"

#include <algorithm>

namespace tc::transport {

namespace {

constexpr uint32_t no_sleeper = 0;  // what slow_commit_flag_ points to without a ring
// The size of a batch: so long that the reader seldom catches up with a cache line that is being written, and short
// beside the smallest ring.
constexpr ptrdiff_t batch_bytes = 1024;

}  // namespace

RingOut::RingOut(FlushList& list, Doorbell& doorbell) noexcept : list_(list), doorbell_(doorbell) {
  slow_commit_flag_ = &no_sleeper;
}

void RingOut::open(const RingView& ring) noexcept {
  ring_ = ring;
  lap_ = 0;
  consumed_ = ring_start;
  cursor_ = ring.data + ring_start;
  set_end();
  max_length_ = ring_max_length(ring.bytes);
  piece_length_ = ring_piece_length(ring.bytes);
  slow_commit_flag_ = &ring.control->sleeping;
  poll_number_ = &list_.poll_state().poll_number;
  poll_lag_ = 0;
  last_poll_ = *poll_number_ - 1;
}

void RingOut::shut() noexcept {
  if (!is_open()) return;
  flush();
  list_.remove(*this);
  ring_ = {};
  cursor_ = end_ = nullptr;
  max_length_ = 0;
  slow_commit_flag_ = &no_sleeper;
  poll_number_ = &no_poll;
  poll_lag_ = last_poll_ = 1;
}

void RingOut::flush() noexcept {
  publish();
  end_batch();
}

void RingOut::publish() noexcept {
  if (batch_end_ == nullptr || batch_at_ == cursor_) return;
  store_header(cursor_, 0);  // the end of the batch, before its beginning can be seen
  store_header(batch_at_, batch_header_);
  batch_at_ = cursor_;
  std::atomic_signal_fence(std::memory_order_seq_cst);  // as in finish()
  if (__atomic_load_n(slow_commit_flag_, __ATOMIC_RELAXED) != 0) [[unlikely]]
    wake_reader();
}

void RingOut::start_batch() noexcept {
  batch_at_ = cursor_;
  batch_end_ = cursor_ + batch_bytes;
}

void RingOut::wake_reader() noexcept {
  if (std::atomic_ref(ring_.control->sleeping).exchange(0, std::memory_order_acq_rel) != 0) doorbell_.ring();
}

void RingOut::update_consumed() noexcept {
  const uint64_t now = std::atomic_ref(ring_.control->consumed).load(std::memory_order_acquire);
  if (now >= consumed_ && now <= position()) consumed_ = now;
}

void RingOut::set_end() noexcept {
  const uint64_t free = ring_.bytes - (position() - consumed_);
  const uint64_t room = free < 2 * wire::header_bytes ? 0 : free - wire::header_bytes;
  end_ = cursor_ + std::min<uint64_t>(room, static_cast<uint64_t>(ring_.last_place() - cursor_));
}

// The caller has found no room up to end_, which may be out of date. In this order:
//   1. Publish the batch: the reader has to see it before it can free its space.
//   2. Read how far the reader is now.
//   3. If the frame does not fit before the end of the memory, write a pad and go on with the next lap. As with a
//      frame, the word behind the pad, at the start of that lap, becomes zero before the pad is visible. Without space
//      for the pad there is no room.
//   4. Set end_ anew. It is the nearer one of two limits: the end of the memory, and what the reader still has to read.
std::byte* RingOut::make_room(size_t length) noexcept {
  if (!is_open() || length > max_length_) return nullptr;
  const size_t need = wire::stride(length);
  const bool holding = batch_end_ != nullptr;
  if (holding) flush();
  update_consumed();
  if (need > static_cast<size_t>(ring_.last_place() - cursor_)) {  // not before the end of the memory
    const uint64_t pad = ring_.to_next_lap(position());
    if (pad + wire::header_bytes > ring_.bytes - (position() - consumed_)) return nullptr;
    std::byte* const next = ring_.data + ring_start;
    std::byte* const here = cursor_;
    store_header(next, 0);
    lap_ += ring_.bytes;
    cursor_ = next;
    store_header(here, wire::encode(wire::Kind::pad, 0, 0, static_cast<uint32_t>(pad - wire::header_bytes)));
  }
  set_end();
  if (holding) start_batch();
  return need <= static_cast<size_t>(end_ - cursor_) ? cursor_ : nullptr;
}

// Wakes a sleeping reader. From the second frame of a poll on, frames are held back as a batch.
void RingOut::slow_commit() noexcept {
  if (batch_end_ != nullptr) {
    publish();
    start_batch();
    return;
  }
  if (__atomic_load_n(slow_commit_flag_, __ATOMIC_RELAXED) != 0) wake_reader();
  if (!speed::hold || *poll_number_ != last_poll_) return;
  start_batch();
  list_.add(*this);
}

}  // namespace tc::transport
