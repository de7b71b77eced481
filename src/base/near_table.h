// SPDX-License-Identifier: Apache-2.0
//
// A table by small numbers whose first rows lie in the object itself, beside what its owner touches at the same time:
// where all is cold, a page more costs as much as the work.
//
// Thread: one at a time.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

namespace tc {

template <class Row, size_t near_rows>
class NearTable {
 public:
  // Null: there is no such row.
  Row* find(size_t number) noexcept {
    if (number < near_rows) [[likely]]
      return &near_[number];
    return number - near_rows < far_.size() ? &far_[number - near_rows] : nullptr;
  }
  // Makes it where there is none; may throw std::bad_alloc.
  Row& row(size_t number) {
    is_clear_ = false;
    if (number < near_rows) return near_[number];
    if (number - near_rows >= far_.size()) far_.resize(number - near_rows + 1);
    return far_[number - near_rows];
  }
  template <class Visit>
  void each(const Visit& visit) {
    for (auto& row : near_) visit(row);
    for (auto& row : far_) visit(row);
  }
  // All rows are again as they were made.
  void clear() noexcept {
    if (is_clear_) return;
    is_clear_ = true;
    near_.fill({});
    far_.clear();
  }

 private:
  bool is_clear_ = true;
  std::array<Row, near_rows> near_{};
  std::vector<Row> far_;
};

}  // namespace tc
