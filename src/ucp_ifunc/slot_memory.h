// SPDX-License-Identifier: Apache-2.0
//
// What is remembered of polled slots: the last frame that was run, because bytes of a put may land twice (a memcpy
// writes overlapping pieces, a network sends again) and make a slot look full once more; and since when a frame has
// been arriving, so that a damaged one is given up instead of waited for.
//
// Only frames that are not ordered come here. A table of fixed size: when two slots share a place, the one that was
// seen last has it. What must be remembered is remembered for microseconds.
//
// Threads: any; each slot is polled by one thread at a time.
#pragma once

#include <array>
#include <atomic>

#include "ucp_ifunc/slot_frame.h"

namespace tc::ucp {

class SlotMemory {
 public:
  // False when this very frame was run from this slot before.
  bool is_new(const void* slot, const slot::Header& header) noexcept {
    auto& place = at(slot);
    const uint64_t mark = header.body_check ^ uint64_t{header.nonce} << 32 ^ header.length;
    place.arriving_since.store(0, std::memory_order_relaxed);
    if (place.slot.load(std::memory_order_relaxed) == slot && place.last.load(std::memory_order_relaxed) == mark)
      return false;
    place.slot.store(slot, std::memory_order_relaxed);
    place.last.store(mark, std::memory_order_relaxed);
    return true;
  }

  // For how long a frame has been arriving here; 0 for the first time.
  uint64_t arriving_ns(const void* slot, uint64_t now) noexcept {
    auto& place = at(slot);
    if (place.slot.exchange(slot, std::memory_order_relaxed) != slot) {
      place.last.store(0, std::memory_order_relaxed);
      place.arriving_since.store(0, std::memory_order_relaxed);
    }
    const auto since = place.arriving_since.load(std::memory_order_relaxed);
    if (since != 0) return now - since;
    place.arriving_since.store(now, std::memory_order_relaxed);
    return 0;
  }
  void gave_up(const void* slot) noexcept { at(slot).arriving_since.store(0, std::memory_order_relaxed); }

 private:
  struct Place {
    std::atomic<const void*> slot{nullptr};
    std::atomic<uint64_t> last{0};
    std::atomic<uint64_t> arriving_since{0};
  };
  Place& at(const void* slot) noexcept {
    const auto mixed = static_cast<uint64_t>(reinterpret_cast<uintptr_t>(slot)) * 0x9e3779b97f4a7c15;
    return places_[mixed >> 54];
  }
  std::array<Place, 1024> places_;
};

}  // namespace tc::ucp
