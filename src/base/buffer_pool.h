// SPDX-License-Identifier: Apache-2.0
//
// Memory for large messages. Fresh pages cost more than the copy into them, so the pool keeps used memory and hands it
// out again. It returns memory that was unused for a second to the system. Memory in use counts against a budget: one
// limit for all peers of a node, so that together they cannot take more than its operator allows.
//
// Threads: any.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"

namespace tc {

// How much memory may hold messages that have not run, left, or been read yet.
class MemoryBudget {
 public:
  explicit MemoryBudget(size_t limit) noexcept : limit_(limit) {}
  // False: this would exceed the limit, and nothing was taken.
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

// The part of a budget that one message takes, and of the share that its peer has in it. Its destructor gives both back.
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
    if (share_ != nullptr) share_->give(bytes_);
  }
  // False: this would exceed the limit of one of them. `share`: null: the peer has no limit of its own.
  bool take(MemoryBudget& budget, size_t bytes, std::shared_ptr<MemoryBudget> share = nullptr) noexcept {
    if (share != nullptr && !share->take(bytes)) return false;
    if (!budget.take(bytes)) {
      if (share != nullptr) share->give(bytes);
      return false;
    }
    Charge taken;
    taken.budget_ = &budget;
    taken.share_ = std::move(share);
    taken.bytes_ = bytes;
    swap(taken);
    return true;
  }
  // The same of a share alone: of what counts against the budget by itself, or does not count there yet.
  bool take_share(std::shared_ptr<MemoryBudget> share, size_t bytes) noexcept {
    if (!share->take(bytes)) return false;
    Charge taken;
    taken.share_ = std::move(share);
    taken.bytes_ = bytes;
    swap(taken);
    return true;
  }

 private:
  void swap(Charge& other) noexcept {
    std::swap(budget_, other.budget_);
    std::swap(share_, other.share_);
    std::swap(bytes_, other.bytes_);
  }

  MemoryBudget* budget_ = nullptr;
  std::shared_ptr<MemoryBudget> share_;
  size_t bytes_ = 0;
};

class BufferPool;

// A piece of a pool's memory, page-aligned. Its destructor returns it to the pool.
class PooledBuffer {
 public:
  PooledBuffer() = default;
  PooledBuffer(PooledBuffer&& other) noexcept { swap(other); }
  PooledBuffer& operator=(PooledBuffer&& other) noexcept {
    swap(other);
    return *this;
  }
  ~PooledBuffer();

  std::byte* data() const noexcept { return data_; }
  size_t size() const noexcept { return size_; }  // as the caller of take() wanted it
  explicit operator bool() const noexcept { return data_ != nullptr; }
  // Of memory that BufferPool::reserve() gave: its first `bytes` bytes are about to be written, and count from now on.
  // TC_ERR_LIMIT: the budget is used up.
  Status use(size_t bytes) noexcept {
    if (bytes <= counted_) [[likely]]
      return {};
    return count(bytes);
  }
  // Gives the memory to the application: it does not count against the budget any more.
  void hand_over() noexcept;

 private:
  friend class BufferPool;
  Status count(size_t bytes) noexcept;
  void swap(PooledBuffer& other) noexcept {
    std::swap(pool_, other.pool_);
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(capacity_, other.capacity_);
    std::swap(counted_, other.counted_);
    std::swap(is_whole_, other.is_whole_);
  }

  std::shared_ptr<BufferPool> pool_;
  std::byte* data_ = nullptr;
  size_t size_ = 0, capacity_ = 0;
  size_t counted_ = 0;    // bytes that count against the budget
  bool is_whole_ = true;  // all of it was counted: it may be kept for others
};

class BufferPool : public std::enable_shared_from_this<BufferPool> {
 public:
  static std::shared_ptr<BufferPool> create(size_t limit) { return std::make_shared<BufferPool>(limit); }
  explicit BufferPool(size_t limit) noexcept : budget_(limit) {}
  ~BufferPool();

  // Memory of `size` bytes with undefined content. TC_ERR_LIMIT: the budget is used up. TC_ERR_NO_MEMORY.
  Result<PooledBuffer> take(size_t size);
  // The same for a message of which the end is not here yet, and may never come. What has been written before counts at once;
  // fresh memory, which has no pages yet, counts as it is used: PooledBuffer::use().
  Result<PooledBuffer> reserve(size_t size);
  MemoryBudget& budget() noexcept { return budget_; }
  // Returns memory that was unused for a second to the system. The node calls this from time to time.
  void trim(uint64_t now_ns) noexcept;

 private:
  friend class PooledBuffer;
  struct Idle {
    std::byte* data;
    size_t capacity;
    uint64_t since_ns;
  };
  std::unexpected<Error> no_room(size_t wanted) const noexcept;
  PooledBuffer find_idle(size_t size);
  Status allocate(PooledBuffer& buffer);
  void put_back(std::byte* data, size_t capacity) noexcept;

  MemoryBudget budget_;
  std::mutex mutex_;
  std::vector<Idle> idle_;
  std::atomic<bool> has_idle_{false};
};

}  // namespace tc
