// SPDX-License-Identifier: Apache-2.0
//
// How much memory may hold messages that have not run, left, or been read yet: one limit for all peers of a node, so that
// peers together cannot take more than its operator allows.
//
// Threads: any.
#pragma once

#include <atomic>
#include <cstddef>
#include <utility>

namespace tc {

class MemoryBudget {
 public:
  explicit MemoryBudget(size_t limit) noexcept : limit_(limit) {}
  // False: that would be too much, and nothing was taken.
  bool take(size_t bytes) noexcept {
    const auto before = used_.fetch_add(bytes, std::memory_order_relaxed);
    if (bytes <= limit_ && before <= limit_ - bytes) return true;
    give(bytes);
    return false;
  }
  void give(size_t bytes) noexcept { used_.fetch_sub(bytes, std::memory_order_relaxed); }
  size_t used() const noexcept { return used_.load(std::memory_order_relaxed); }
  size_t limit() const noexcept { return limit_; }

 private:
  const size_t limit_;
  std::atomic<size_t> used_{0};
};

// What one message takes of a budget; given back when it is destroyed.
class Charge {
 public:
  Charge() = default;
  Charge(Charge&& other) noexcept { swap(other); }
  Charge& operator=(Charge&& other) noexcept {
    swap(other);
    return *this;
  }
  ~Charge() {
    if (budget_ != nullptr) budget_->give(bytes_);
  }
  // False: that would be too much.
  bool take(MemoryBudget& budget, size_t bytes) noexcept {
    if (!budget.take(bytes)) return false;
    Charge taken;
    taken.budget_ = &budget;
    taken.bytes_ = bytes;
    swap(taken);
    return true;
  }

 private:
  void swap(Charge& other) noexcept {
    std::swap(budget_, other.budget_);
    std::swap(bytes_, other.bytes_);
  }

  MemoryBudget* budget_ = nullptr;
  size_t bytes_ = 0;
};

}  // namespace tc
