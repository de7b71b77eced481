// SPDX-License-Identifier: Apache-2.0
#include "target/free_ranges.h"

#include <algorithm>
#include <iterator>

namespace tc::target {

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
      it->second = at;
      if (at + size != end) free_.emplace_hint(std::next(it), at + size, end);
    }
    return at;
  }
  return std::nullopt;
}

void FreeRanges::give(size_t offset, size_t size) {
  size_t begin = offset;
  size_t end = offset + size;
  auto next = free_.lower_bound(offset);
  if (next != free_.begin()) {
    if (auto before = std::prev(next); before->second == begin) {
      begin = before->first;
      free_.erase(before);
    }
  }
  if (next != free_.end() && next->first == end) {
    end = next->second;
    next = free_.erase(next);
  }
  free_.emplace_hint(next, begin, end);
}

}  // namespace tc::target
