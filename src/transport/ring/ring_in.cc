// SPDX-License-Identifier: Apache-2.0
#include "transport/ring/ring_in.h"

#include <cstring>

namespace tc::transport {

void RingIn::start(const RingView& ring) noexcept {
  std::memset(ring.control, 0, ring_data_offset);
  ring.control->consumed = ring_start;
  store_header(ring.data + ring_start, 0);
}

void RingIn::open(const RingView& ring) noexcept {
  ring_ = ring;
  lap_ = 0;
  published_ = ring_start;
  cursor_ = ring.data + ring_start;
  end_ = ring.last_place();
}

void RingIn::shut() noexcept {
  if (!is_open()) return;
  lap_ = consumed();
  ring_ = {};
  abandon();
}

bool RingIn::refill() noexcept {
  if (!is_open()) return false;
  const uint64_t word = peek();
  if (word == 0) return false;
  const wire::Header header = wire::decode(word);
  const bool is_pad = header.kind == wire::Kind::pad;
  if (!is_pad && fits(header.length)) return true;
  if (!is_pad || wire::stride(header.length) != ring_.to_next_lap(position())) {
    broken_ = true;  // a visible frame is whole, and a pad leads to the next lap
    return false;
  }
  lap_ += ring_.bytes;
  cursor_ = ring_.data + ring_start;
  return true;
}

// Each store to `consumed` costs the sender a cache miss when it reads it, which it does only when the ring seems full.
// So the position is published seldom while frames keep coming, and at once when they stop.
void RingIn::release() noexcept {
  if (!is_open()) return;
  const uint64_t now = position();
  if (now == published_ || (now - published_ < ring_.bytes / 8 && peek() != 0)) return;
  published_ = now;
  std::atomic_ref(ring_.control->consumed).store(now, std::memory_order_release);
}

void RingIn::set_sleeping(bool sleeping) noexcept {
  if (is_open()) std::atomic_ref(ring_.control->sleeping).store(sleeping ? 1 : 0, std::memory_order_relaxed);
}

}  // namespace tc::transport
