// SPDX-License-Identifier: Apache-2.0
#include "transport/ring_in.h"

#include <cstring>

namespace tc::transport {

void RingIn::start(const RingView& ring, uint64_t nonce) noexcept {
  std::memset(ring.control, 0, ring_data_offset);
  ring.control->consumed = ring_start;
  ring.control->nonce = nonce;
  store_header(ring.data + ring_start, 0);
}

void RingIn::use_ring(const RingView& ring) noexcept {
  ring_ = ring;
  lap_ = 0;
  published_ = ring_start;
  dry_at_zero_ = true;
  bypass().is_shut = true;
  cursor_ = ring.data + ring_start;
  end_ = ring.last_place();
}

void RingIn::leave_ring() noexcept {
  if (!uses_ring() || left_) return;
  lap_ = position();  // consumed() stays what it was
  left_ = true;
  ring_.data = nothing_;
  cursor_ = end_ = nothing_;
}

[[gnu::hot]] bool RingIn::refill() noexcept {
  if (!uses_ring()) return BatchIn::refill();
  if (left_) return false;
  const uint64_t word = peek();
  if (word == 0) return false;
  const wire::Header header = wire::decode(word);
  if (header.kind != wire::Kind::pad) return true;
  if (wire::stride(header.length) != ring_.to_next_lap(position())) {
    leave_ring();
    broken_ = true;
    return false;
  }
  lap_ += ring_.bytes;
  cursor_ = ring_.data + ring_start;
  return true;
}

// The sender looks at `consumed` only when it believes the ring to be full, and then each store costs it a cache
// miss: publish seldom while frames keep coming, and at once when they stop.
[[gnu::hot]] void RingIn::release() noexcept {
  if (!uses_ring()) return BatchIn::release();
  if (left_) return;
  const uint64_t now = position();
  if (now == published_ || (now - published_ < ring_.bytes / 8 && peek() != 0)) return;
  published_ = now;
  std::atomic_ref(ring_.control->consumed).store(now, std::memory_order_release);
}

[[gnu::hot]] uint64_t RingIn::consumed() const noexcept {
  return uses_ring() ? position() - ring_start : BatchIn::consumed();
}

void RingIn::set_sleeping(bool sleeping) noexcept {
  if (uses_ring() && !left_)
    std::atomic_ref(ring_.control->sleeping).store(sleeping ? 1 : 0, std::memory_order_relaxed);
}

}  // namespace tc::transport
