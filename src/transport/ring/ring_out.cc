// SPDX-License-Identifier: Apache-2.0
#include "transport/ring/ring_out.h"

#include <algorithm>

namespace tc::transport {

namespace {

constexpr uint32_t nobody_sleeps = 0;
// Frames that become visible together: long enough that the reader seldom catches up with a line being written, short
// beside the smallest ring.
constexpr ptrdiff_t held_bytes = 1024;

}  // namespace

RingOut::RingOut(FlushList& list, Doorbell& doorbell) noexcept : list_(list), doorbell_(doorbell) {
  attention_ = &nobody_sleeps;
}

void RingOut::open(const RingView& ring) noexcept {
  ring_ = ring;
  lap_ = 0;
  consumed_ = ring_start;
  cursor_ = ring.data + ring_start;
  set_end();
  max_length_ = ring_max_length(ring.bytes);
  piece_length_ = ring_piece_length(ring.bytes);
  attention_ = &ring.control->sleeping;
  turn_ = &list_.pulse().turn;
  turn_lag_ = 0;
  last_turn_ = *turn_ - 1;
}

void RingOut::shut() noexcept {
  if (!is_open()) return;
  flush();
  list_.remove(*this);
  ring_ = {};
  cursor_ = end_ = nullptr;
  max_length_ = 0;
  attention_ = &nobody_sleeps;
  turn_ = &no_turn;
  turn_lag_ = last_turn_ = 1;
}

void RingOut::flush() noexcept {
  publish();
  stop_holding();
}

void RingOut::publish() noexcept {
  if (held_end_ == nullptr || held_at_ == cursor_) return;
  store_header(cursor_, 0);  // where the frames end
  store_header(held_at_, held_word_);
  held_at_ = cursor_;
  std::atomic_signal_fence(std::memory_order_seq_cst);  // as in finish()
  if (__atomic_load_n(attention_, __ATOMIC_RELAXED) != 0) [[unlikely]]
    wake_if_asleep();
}

void RingOut::hold_from_here() noexcept {
  held_at_ = cursor_;
  held_end_ = cursor_ + held_bytes;
}

void RingOut::wake_if_asleep() noexcept {
  if (std::atomic_ref(ring_.control->sleeping).exchange(0, std::memory_order_acq_rel) != 0) doorbell_.ring();
}

void RingOut::look_how_far() noexcept {
  const uint64_t now = std::atomic_ref(ring_.control->consumed).load(std::memory_order_acquire);
  if (now >= consumed_ && now <= position()) consumed_ = now;
}

void RingOut::set_end() noexcept {
  const uint64_t free = ring_.bytes - (position() - consumed_);
  const uint64_t room = free < 2 * wire::header_bytes ? 0 : free - wire::header_bytes;
  end_ = cursor_ + std::min<uint64_t>(room, static_cast<uint64_t>(ring_.last_place() - cursor_));
}

std::byte* RingOut::make_room(size_t length) noexcept {
  if (!is_open() || length > max_length_) return nullptr;
  const size_t need = wire::stride(length);
  const bool holding = held_end_ != nullptr;
  if (holding) flush();
  look_how_far();
  if (need > static_cast<size_t>(ring_.last_place() - cursor_)) {  // not in this lap
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
  if (holding) hold_from_here();
  return need <= static_cast<size_t>(end_ - cursor_) ? cursor_ : nullptr;
}

void RingOut::attend() noexcept {
  if (held_end_ != nullptr) {
    publish();
    hold_from_here();
    return;
  }
  if (__atomic_load_n(attention_, __ATOMIC_RELAXED) != 0) wake_if_asleep();
  if (!speed::hold || *turn_ != last_turn_) return;
  hold_from_here();
  list_.add(*this);
}

}  // namespace tc::transport
