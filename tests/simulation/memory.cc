// SPDX-License-Identifier: Apache-2.0
#include "simulation/memory.h"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <new>
#include <utility>

#include "simulation/environment.h"
#include "simulation/plan.h"
#include "transport/testing/simulated/simulated.h"

namespace tc::simulation {

namespace {

constexpr uint64_t latest = 4096, latest_map = 32, most_in_a_row = 64;

thread_local Shortage* shortage = nullptr;
thread_local uint64_t failed = 0;
std::atomic<uint64_t> living = 0;

bool allocation_fails(bool is_map) noexcept {
  if (shortage == nullptr || shortage->fail == 0 || transport::NetworkWork::is_on()) return false;
  if (shortage->only_of_maps && !is_map) return false;
  if (shortage->succeed != 0) return --shortage->succeed, false;
  --shortage->fail;
  ++failed;
  return true;
}

void* allocate(size_t size, size_t alignment) {
  const size_t whole = (size + alignment - 1) / alignment * alignment;
  void* const memory = allocation_fails(false) ? nullptr : std::aligned_alloc(alignment, whole);
  if (memory == nullptr) throw std::bad_alloc();
  living.fetch_add(1, std::memory_order_relaxed);
  return memory;
}

void* allocate_or_null(size_t size, size_t alignment) noexcept try {
  return allocate(size, alignment);
} catch (const std::bad_alloc&) {
  return nullptr;
}

void release(void* memory) noexcept {
  if (memory != nullptr) living.fetch_sub(1, std::memory_order_relaxed);
  std::free(memory);
}

}  // namespace

Shortage shortage_of(const Event& event) noexcept {
  Dice dice(event.seed);
  const bool only_of_maps = dice.once_in(4);
  const auto succeed = dice.skewed(only_of_maps ? latest_map : latest);
  return {
      .succeed = succeed, .fail = dice.once_in(2) ? 1 : 1 + dice.skewed(most_in_a_row), .only_of_maps = only_of_maps};
}

MemoryOfNode::MemoryOfNode(Shortage* of_node) noexcept : before_(std::exchange(shortage, of_node)) {}
MemoryOfNode::~MemoryOfNode() { shortage = before_; }

uint64_t living_allocations() noexcept { return living.load(std::memory_order_relaxed); }
uint64_t failed_allocations() noexcept { return failed; }

}  // namespace tc::simulation

namespace {

// As a system call does it that may lack memory.
template <class... Arguments>
long call_system(long number, Arguments... arguments) noexcept {
  if (!tc::simulation::allocation_fails(true)) return ::syscall(number, arguments...);
  errno = ENOMEM;
  return -1;
}

}  // namespace

extern "C" {

void* mmap(void* wanted, size_t size, int protection, int flags, int file, off_t offset) noexcept {
  return reinterpret_cast<void*>(call_system(SYS_mmap, wanted, size, protection, flags, file, offset));
}
int mprotect(void* at, size_t size, int protection) noexcept {
  return static_cast<int>(call_system(SYS_mprotect, at, size, protection));
}
int memfd_create(const char* name, unsigned flags) noexcept {
  return static_cast<int>(call_system(SYS_memfd_create, name, flags));
}

}  // extern "C"

// Every form, as a sanitizer has its own: with one of them a seed would be another story under it. Not inlined: gcc takes a new
// and a free() in one function for a mistake.
[[gnu::noinline]] void* operator new(size_t size) { return tc::simulation::allocate(size, alignof(std::max_align_t)); }
[[gnu::noinline]] void* operator new(size_t size, const std::nothrow_t&) noexcept {
  return tc::simulation::allocate_or_null(size, alignof(std::max_align_t));
}
[[gnu::noinline]] void* operator new(size_t size, std::align_val_t alignment) {
  return tc::simulation::allocate(size, static_cast<size_t>(alignment));
}
[[gnu::noinline]] void* operator new(size_t size, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return tc::simulation::allocate_or_null(size, static_cast<size_t>(alignment));
}
[[gnu::noinline]] void* operator new[](size_t size) {
  return tc::simulation::allocate(size, alignof(std::max_align_t));
}
[[gnu::noinline]] void* operator new[](size_t size, const std::nothrow_t&) noexcept {
  return tc::simulation::allocate_or_null(size, alignof(std::max_align_t));
}
[[gnu::noinline]] void* operator new[](size_t size, std::align_val_t alignment) {
  return tc::simulation::allocate(size, static_cast<size_t>(alignment));
}
[[gnu::noinline]] void* operator new[](size_t size, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return tc::simulation::allocate_or_null(size, static_cast<size_t>(alignment));
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { tc::simulation::release(memory); }
[[gnu::noinline]] void operator delete(void* memory, size_t) noexcept { tc::simulation::release(memory); }
[[gnu::noinline]] void operator delete(void* memory, const std::nothrow_t&) noexcept {
  tc::simulation::release(memory);
}
[[gnu::noinline]] void operator delete(void* memory, std::align_val_t) noexcept { tc::simulation::release(memory); }
[[gnu::noinline]] void operator delete(void* memory, size_t, std::align_val_t) noexcept {
  tc::simulation::release(memory);
}
[[gnu::noinline]] void operator delete(void* memory, std::align_val_t, const std::nothrow_t&) noexcept {
  tc::simulation::release(memory);
}
[[gnu::noinline]] void operator delete[](void* memory) noexcept { tc::simulation::release(memory); }
[[gnu::noinline]] void operator delete[](void* memory, size_t) noexcept { tc::simulation::release(memory); }
[[gnu::noinline]] void operator delete[](void* memory, const std::nothrow_t&) noexcept {
  tc::simulation::release(memory);
}
[[gnu::noinline]] void operator delete[](void* memory, std::align_val_t) noexcept { tc::simulation::release(memory); }
[[gnu::noinline]] void operator delete[](void* memory, size_t, std::align_val_t) noexcept {
  tc::simulation::release(memory);
}
[[gnu::noinline]] void operator delete[](void* memory, std::align_val_t, const std::nothrow_t&) noexcept {
  tc::simulation::release(memory);
}
