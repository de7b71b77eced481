// SPDX-License-Identifier: Apache-2.0
//
// Which parts of a range are free: first fit, neighbours joined again. Knows offsets only, no memory.
#pragma once

#include <cstddef>
#include <map>
#include <optional>

namespace tc::target::jit {

class FreeList {
 public:
  // Pieces are whole cache lines, so that no two ifuncs share one.
  static constexpr size_t granule = 64;
  static constexpr size_t round_up(size_t size, size_t to) noexcept { return (size + to - 1) & ~(to - 1); }

  explicit FreeList(size_t size) : size_(size) { free_.emplace(0, size); }

  // The offset of `size` bytes, a multiple of the granule; `alignment` is a power of two. Empty when nothing fits.
  std::optional<size_t> take(size_t size, size_t alignment) {
    for (auto it = free_.begin(); it != free_.end(); ++it) {
      const auto [start, room] = *it;
      const auto offset = round_up(start, alignment);
      if (offset - start > room || room - (offset - start) < size) continue;
      const auto end = start + room;
      if (offset == start) {
        free_.erase(it);
      } else {
        it->second = offset - start;
      }
      if (offset + size < end) free_.emplace(offset + size, end - offset - size);
      used_ += size;
      return offset;
    }
    return std::nullopt;
  }

  // Gives back what take() gave.
  void give(size_t offset, size_t size) {
    used_ -= size;
    auto next = free_.lower_bound(offset);
    if (next != free_.end() && offset + size == next->first) {
      size += next->second;
      next = free_.erase(next);
    }
    if (next != free_.begin()) {
      const auto previous = std::prev(next);
      if (previous->first + previous->second == offset) {
        previous->second += size;
        return;
      }
    }
    free_.emplace_hint(next, offset, size);
  }

  size_t size() const noexcept { return size_; }
  size_t used() const noexcept { return used_; }
  // Offset and size of each free stretch, in order.
  const std::map<size_t, size_t>& stretches() const noexcept { return free_; }

 private:
  size_t size_;
  size_t used_ = 0;
  std::map<size_t, size_t> free_;
};

}  // namespace tc::target::jit
