// SPDX-License-Identifier: Apache-2.0
#include "memory/free_ranges.h"

#include <algorithm>
#include <iterator>
#include <new>

namespace tc::memory {

FreeRanges::FreeRanges(size_t size) {
  if (size != 0) free_.emplace(0, size);
}

std::optional<size_t> FreeRanges::take(size_t size, size_t alignment) {
  for (auto it = free_.begin(); it != free_.end(); ++it) {
    const auto [begin, end] = *it;
    const size_t at = (begin + alignment - 1) & ~(alignment - 1);
    if (at > end || end - at < size) continue;
    if (at == begin && at + size == end) {
      free_.erase(it);
    } else if (at == begin) {
      // Moves the range's begin without allocating: this is the usual case, on the way of every load.
      auto node = free_.extract(it++);
      node.key() = at + size;
      free_.insert(it, std::move(node));
    } else {
      if (at + size != end) free_.emplace_hint(std::next(it), at + size, end);
      it->second = at;
    }
    return at;
  }
  return std::nullopt;
}

void FreeRanges::give(size_t offset, size_t size) noexcept {
  const size_t end = offset + size;
  const auto next = free_.lower_bound(offset);
  const bool joins_next = next != free_.end() && next->first == end;
  if (next != free_.begin()) {
    if (const auto before = std::prev(next); before->second == offset) {
      before->second = joins_next ? next->second : end;
      if (joins_next) free_.erase(next);
      return;
    }
  }
  if (joins_next) {
    auto node = free_.extract(next);
    node.key() = offset;
    free_.insert(std::move(node));
    return;
  }
  try {
    free_.emplace_hint(next, offset, end);
  } catch (const std::bad_alloc&) {  // it stays taken, because there is no memory to record that it is free
  }
}

}  // namespace tc::memory
