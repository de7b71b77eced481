// SPDX-License-Identifier: Apache-2.0
//
// Allocations of a node that fail in a simulated cluster. The program's operator new is here (memory.cc), and its mmap(), mprotect()
// and memfd_create(): they count what is allocated while a node works, and leave out what the simulated network allocates, and
// what the books do.
//
// Thread: any; each has its own.
#pragma once

#include <cstdint>

namespace tc::simulation {

struct Event;

// So many allocations of a node succeed from now on, and then so many fail.
struct Shortage {
  uint64_t succeed = 0, fail = 0;
  bool only_of_maps = false;  // memory of the heap neither counts nor fails
};

// Of an event of the kind no_memory.
Shortage shortage_of(const Event& event) noexcept;

// While it lives, what this thread allocates is that node's. Null: it is nobody's, and none of it fails.
class MemoryOfNode {
 public:
  explicit MemoryOfNode(Shortage* shortage) noexcept;
  ~MemoryOfNode();
  MemoryOfNode(const MemoryOfNode&) = delete;
  MemoryOfNode& operator=(const MemoryOfNode&) = delete;

 private:
  Shortage* before_;
};

// How many allocations there are that were not freed. Of all threads.
uint64_t living_allocations() noexcept;
// How many allocations have failed so far.
uint64_t failed_allocations() noexcept;

}  // namespace tc::simulation
