// SPDX-License-Identifier: Apache-2.0
//
// How long something took, many times: the sum, and how many were in each of 14 classes, each four times as long as the one
// before. Two of them can be added.
//
// Threads: any; a plain value.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace tc::wire {

struct Times {
  static constexpr size_t classes = 14;
  // Of all classes but the last, which has no bound.
  static constexpr uint64_t bound_ns(size_t index) noexcept { return uint64_t{250} << (2 * index); }

  uint64_t sum_ns = 0;
  std::array<uint64_t, classes> counts{};  // of each class alone

  // So many took so long together. They count as equals, in the class of their mean.
  void add(uint64_t took_ns, uint64_t times = 1) noexcept {
    size_t index = 0;
    while (index + 1 < classes && took_ns / times > bound_ns(index)) ++index;
    counts[index] += times;
    sum_ns += took_ns;
  }
  Times& operator+=(const Times& other) noexcept {
    sum_ns += other.sum_ns;
    for (size_t i = 0; i < classes; ++i) counts[i] += other.counts[i];
    return *this;
  }
  uint64_t count() const noexcept {
    uint64_t sum = 0;
    for (const auto one : counts) sum += one;
    return sum;
  }
  bool operator==(const Times&) const = default;
};

}  // namespace tc::wire
