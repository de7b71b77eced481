// SPDX-License-Identifier: Apache-2.0
//
// Of the ordinary calls that run in cells, at most one has named data: its author counts on being alone with it. Whose turn it
// is. Concurrent code needs none.
//
// Thread: the node's.
#pragma once

namespace tc::node {

class Cell;

class DataTurn {
 public:
  bool is_free() const noexcept { return cell_ == nullptr; }
  bool may_take(const Cell& cell) const noexcept { return is_free() || cell_ == &cell; }
  void take(const Cell& cell) noexcept { cell_ = &cell; }
  // If that cell has it.
  void give_back(const Cell& cell) noexcept {
    if (cell_ == &cell) cell_ = nullptr;
  }

 private:
  const Cell* cell_ = nullptr;
};

}  // namespace tc::node
