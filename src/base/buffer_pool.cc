// SPDX-License-Identifier: Apache-2.0
#include "base/buffer_pool.h"

#include <sys/mman.h>

#include <algorithm>

#include "base/clock.h"

namespace tc {

namespace {

constexpr size_t small_step = size_t{64} * 1024;
constexpr size_t huge_page = size_t{2} * 1024 * 1024;
constexpr uint64_t idle_ns = 1'000'000'000;

// Capacities grow in steps, so that messages of about the same size can use the same memory.
constexpr size_t capacity_for(size_t size) noexcept {
  const size_t step = size < huge_page ? small_step : huge_page;
  return (std::max<size_t>(size, 1) + step - 1) / step * step;
}

void free_memory(std::byte* data, size_t capacity) noexcept { (void)munmap(data, capacity); }

std::byte* allocate(size_t capacity) noexcept {
  void* const memory = mmap(nullptr, capacity, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  if (capacity >= huge_page) (void)madvise(memory, capacity, MADV_HUGEPAGE);  // fewer page faults
  return static_cast<std::byte*>(memory);
}

}  // namespace

PooledBuffer::~PooledBuffer() {
  if (data_ == nullptr) return;
  hand_over();
  pool_->put_back(data_, capacity_);
}

void PooledBuffer::hand_over() noexcept {
  if (std::exchange(counts_, false)) pool_->budget_.give(capacity_);
}

BufferPool::~BufferPool() {
  for (const auto& idle : idle_) free_memory(idle.data, idle.capacity);
}

Result<PooledBuffer> BufferPool::take(size_t size) {
  PooledBuffer buffer;
  buffer.capacity_ = capacity_for(size);
  {
    // Takes the smallest that is large enough, unless more than half of it would be wasted.
    const std::scoped_lock lock(mutex_);
    auto best = idle_.end();
    for (auto one = idle_.begin(); one != idle_.end(); ++one)
      if (one->capacity >= buffer.capacity_ && one->capacity <= 2 * buffer.capacity_ &&
          (best == idle_.end() || one->capacity < best->capacity))
        best = one;
    if (best != idle_.end()) {
      buffer.data_ = best->data;
      buffer.capacity_ = best->capacity;
      *best = idle_.back();
      idle_.pop_back();
    }
  }
  buffer.pool_ = shared_from_this();
  if (!budget_.take(buffer.capacity_))
    return fail(TC_ERR_LIMIT,
                "{} bytes are in use for messages, {} more are wanted, and {} is the limit (message-memory)",
                budget_.used(), buffer.capacity_, budget_.limit());
  buffer.counts_ = true;
  if (buffer.data_ == nullptr) buffer.data_ = allocate(buffer.capacity_);
  if (buffer.data_ == nullptr) {
    trim(UINT64_MAX);
    buffer.data_ = allocate(buffer.capacity_);
  }
  if (buffer.data_ == nullptr) {
    budget_.give(buffer.capacity_);
    buffer.counts_ = false;
    return fail(TC_ERR_NO_MEMORY, "the system has no {} bytes for a message", buffer.capacity_);
  }
  buffer.size_ = size;
  return buffer;
}

void BufferPool::put_back(std::byte* data, size_t capacity) noexcept {
  try {
    const std::scoped_lock lock(mutex_);
    idle_.push_back({data, capacity, now_ns()});
    has_idle_.store(true, std::memory_order_relaxed);
  } catch (const std::exception&) {
    free_memory(data, capacity);
  }
}

void BufferPool::trim(uint64_t now_ns) noexcept {
  if (!has_idle_.load(std::memory_order_relaxed)) return;
  const std::scoped_lock lock(mutex_);
  std::erase_if(idle_, [&](const Idle& idle) {
    const bool goes = now_ns > idle.since_ns && now_ns - idle.since_ns >= idle_ns;
    if (goes) free_memory(idle.data, idle.capacity);
    return goes;
  });
  has_idle_.store(!idle_.empty(), std::memory_order_relaxed);
}

}  // namespace tc
