// SPDX-License-Identifier: Apache-2.0
//
// Which parts of an address range are free: first fit from the low end, neighbours joined when given back. The low
// end is preferred so that the high end empties and its memory can return to the system.
//
// Thread: one at a time; the owner makes sure of that.
#pragma once

#include <cstddef>
#include <map>
#include <optional>

namespace tc::memory {

class FreeRanges {
 public:
  // All of [0, size) is free.
  explicit FreeRanges(size_t size);

  // The lowest free place for `size` bytes (not 0) at a multiple of `alignment` (a power of two); nothing when there
  // is none.
  std::optional<size_t> take(size_t size, size_t alignment);
  // Gives back exactly what take() granted.
  void give(size_t offset, size_t size) noexcept;

  // In how many pieces the free bytes lie.
  size_t pieces() const noexcept { return free_.size(); }

 private:
  std::map<size_t, size_t> free_;  // begin -> end, never touching each other
};

}  // namespace tc::memory
