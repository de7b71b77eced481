// SPDX-License-Identifier: Apache-2.0
#include "base/buffer_pool.h"

#include <sys/mman.h>

#include <algorithm>

#include "base/clock.h"
#include "base/no_memory.h"

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

std::byte* map_memory(size_t capacity) noexcept {
  void* const memory = mmap(nullptr, capacity, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  if (capacity >= huge_page) (void)madvise(memory, capacity, MADV_HUGEPAGE);  // fewer page faults
  return static_cast<std::byte*>(memory);
}

}  // namespace

PooledBuffer::~PooledBuffer() {
  if (data_ == nullptr) return;
  hand_over();
  if (is_whole_)
    pool_->put_back(data_, capacity_);
  else
    free_memory(data_, capacity_);
}

void PooledBuffer::hand_over() noexcept {
  if (counted_ != 0) pool_->budget_.give(std::exchange(counted_, 0));
}

// In steps of what the system gives at a time.
Status PooledBuffer::count(size_t bytes) noexcept {
  const size_t step = capacity_ < huge_page ? small_step : huge_page;
  const size_t more = std::min((bytes + step - 1) / step * step, capacity_) - counted_;
  if (!pool_->budget_.take(more)) return pool_->no_room(more);
  counted_ += more;
  is_whole_ = counted_ == capacity_;
  return {};
}

BufferPool::~BufferPool() {
  for (const auto& idle : idle_) free_memory(idle.data, idle.capacity);
}

std::unexpected<Error> BufferPool::no_room(size_t wanted) const noexcept try {
  return fail(TC_ERR_LIMIT,
              "{} bytes are in use for messages, {} more are wanted, and {} is the limit (message-memory)",
              budget_.used(), wanted, budget_.limit());
} catch (const std::bad_alloc&) {
  return fail(error_in_any_case(TC_ERR_LIMIT, "message-memory"));
}

// Takes the smallest that is large enough, unless more than half of it would be wasted. Without memory: there is none.
PooledBuffer BufferPool::find_idle(size_t size) {
  PooledBuffer buffer;
  buffer.pool_ = shared_from_this();
  buffer.size_ = size;
  buffer.capacity_ = capacity_for(size);
  const std::scoped_lock lock(mutex_);
  auto best = idle_.end();
  for (auto one = idle_.begin(); one != idle_.end(); ++one)
    if (one->capacity >= buffer.capacity_ && one->capacity <= 2 * buffer.capacity_ &&
        (best == idle_.end() || one->capacity < best->capacity))
      best = one;
  if (best == idle_.end()) return buffer;
  buffer.data_ = best->data;
  buffer.capacity_ = best->capacity;
  *best = idle_.back();
  idle_.pop_back();
  return buffer;
}

Status BufferPool::allocate(PooledBuffer& buffer) {
  buffer.data_ = map_memory(buffer.capacity_);
  if (buffer.data_ == nullptr) {
    trim(UINT64_MAX);
    buffer.data_ = map_memory(buffer.capacity_);
  }
  if (buffer.data_ != nullptr) return {};
  buffer.hand_over();
  return fail(TC_ERR_NO_MEMORY, "the system has no {} bytes for a message", buffer.capacity_);
}

Result<PooledBuffer> BufferPool::take(size_t size) {
  auto buffer = find_idle(size);
  TC_CHECK(buffer.count(buffer.capacity_));
  if (!buffer) TC_CHECK(allocate(buffer));
  return buffer;
}

Result<PooledBuffer> BufferPool::reserve(size_t size) {
  auto buffer = find_idle(size);
  if (buffer && buffer.count(buffer.capacity_)) return buffer;
  PooledBuffer fresh;  // the idle one goes back
  fresh.pool_ = shared_from_this();
  fresh.size_ = size;
  fresh.capacity_ = capacity_for(size);
  TC_CHECK(allocate(fresh));
  fresh.is_whole_ = false;
  return fresh;
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
