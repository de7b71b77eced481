// SPDX-License-Identifier: Apache-2.0
//
// The memory of a ring: a control area that both sides write, then the frames, which only the sender writes.
//
//     | consumed | sleeping |   | frame | frame | ... | 0 | free ... | pad to the end |
//       control area, 128 B     ^ offset 8            ^ the sender's next header
//
// Positions count bytes from the beginning of the connection and start at 8. A frame at position p has its header at
// offset p & (bytes - 1), which is always 8 modulo 16. A frame never wraps: it ends at bytes - 8 at the latest. Where
// the next one does not fit, a pad leads to offset 8 of the next lap. No pad leads anywhere else.
//
// Before a header becomes visible, the word at the next header's place is zero, so that the receiver stops there
// without writing anything. For this the sender needs one word of margin: a frame of stride s may be written at p when
// p + s + 8 <= consumed + bytes.
//
// Thread: any, for the functions here. Each ring has one writing and one reading thread (ring_out.h, ring_in.h).
#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "wire/frame.h"

namespace tc::transport {

struct RingControl {
  // Written by the receiver: the linear position up to which it has read.
  alignas(64) uint64_t consumed;
  // The receiver sets 1 before it sleeps. A sender that finds 1 exchanges it for 0 and wakes the receiver.
  alignas(64) uint32_t sleeping;
};

inline constexpr uint64_t ring_start = wire::header_bytes;
inline constexpr size_t ring_data_offset = sizeof(RingControl);
inline constexpr size_t min_ring_bytes = 4096;
inline constexpr size_t max_ring_bytes = size_t{1} << 30;

constexpr bool ring_size_is_valid(size_t bytes) noexcept {
  return std::has_single_bit(bytes) && bytes >= min_ring_bytes && bytes <= max_ring_bytes;
}
// Memory needed for a ring of `bytes`.
constexpr size_t ring_memory_bytes(size_t bytes) noexcept { return ring_data_offset + bytes; }
// A quarter of the ring, so that one long frame does not have to wait until the ring is empty.
constexpr size_t ring_max_length(size_t bytes) noexcept { return bytes / 4 - wire::alignment; }
// For pieces of a large frame: while one is written, the ones before it are read.
constexpr size_t ring_piece_length(size_t bytes) noexcept { return bytes / 8 - wire::alignment; }

// One side's view of a ring.
struct RingView {
  RingControl* control = nullptr;
  std::byte* data = nullptr;
  size_t bytes = 0;

  static RingView at(void* memory, size_t bytes) noexcept {
    return {static_cast<RingControl*>(memory), static_cast<std::byte*>(memory) + ring_data_offset, bytes};
  }
  std::byte* place(uint64_t position) const noexcept { return data + (position & (bytes - 1)); }
  std::byte* last_place() const noexcept { return data + bytes - wire::header_bytes; }
  // From a position to offset 8 of the next lap: the stride of a pad there.
  uint64_t to_next_lap(uint64_t position) const noexcept { return bytes - (position & (bytes - 1)) + ring_start; }
};
static_assert(ring_data_offset % 64 == 0);

}  // namespace tc::transport
