// SPDX-License-Identifier: Apache-2.0
//
// Memory for linked code: the target's arena behind a lock, for linking and freeing may happen on two threads.
//
// One arena serves thousands of ifuncs with a fixed number of mappings; JITLink's own allocator takes two mappings
// and 42 KiB for each, of the 65 530 mappings that a process may have.
#pragma once

#include <llvm/ExecutionEngine/JITLink/JITLinkMemoryManager.h>

#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "memory/arena.h"

namespace tc::target::jit {

class CodeArena;

// A placement that is released when destroyed. Keeps the arena alive.
class Allocation {
 public:
  Allocation() = default;
  ~Allocation();
  Allocation(Allocation&& other) noexcept { *this = std::move(other); }
  Allocation& operator=(Allocation&& other) noexcept {
    std::swap(owner_, other.owner_);
    std::swap(placement_, other.placement_);
    return *this;
  }

  const memory::Placement& placement() const noexcept { return placement_; }
  // Makes the text executable; it is not written any more.
  Status seal();

 private:
  friend class CodeArena;
  Allocation(std::shared_ptr<CodeArena> owner, memory::Placement placement) noexcept
      : owner_(std::move(owner)), placement_(placement) {}

  std::shared_ptr<CodeArena> owner_;
  memory::Placement placement_;
};

// Threads: any; calls may overlap.
class CodeArena : public std::enable_shared_from_this<CodeArena> {
 public:
  static Result<std::shared_ptr<CodeArena>> create();
  // Code for another process: `arena` is an exported one, which outlives what is allocated in it.
  static std::shared_ptr<CodeArena> around(memory::Arena& arena);

  // Errors of Arena::place.
  Result<Allocation> allocate(size_t text_bytes, size_t data_bytes, size_t alignment);

 private:
  friend class Allocation;
  CodeArena(std::unique_ptr<memory::Arena> own, memory::Arena& arena) noexcept : own_(std::move(own)), arena_(arena) {}

  std::mutex mutex_;
  const std::unique_ptr<memory::Arena> own_;  // null around another's
  memory::Arena& arena_;
};

// Gives JITLink memory for one link: code and constants in the half of a placement that can be executed and not
// written, data in the other.
//
// Thread: the one that links.
class LinkMemory final : public llvm::jitlink::JITLinkMemoryManager {
 public:
  explicit LinkMemory(CodeArena& memory) : memory_(memory) {}

  void allocate(const llvm::jitlink::JITLinkDylib* dylib, llvm::jitlink::LinkGraph& graph,
                OnAllocatedFunction on_allocated) override;
  void deallocate(std::vector<FinalizedAlloc> allocations, OnDeallocatedFunction on_deallocated) override;

  // The memory of the link, once it has succeeded.
  Allocation take() { return std::move(allocation_); }
  // Why there was no memory.
  const std::optional<Error>& error() const noexcept { return error_; }

 private:
  class InFlight;

  Status lay_out(llvm::jitlink::BasicLayout& layout);
  llvm::Error note(Error error);

  CodeArena& memory_;
  Allocation allocation_;
  std::optional<Error> error_;
};

}  // namespace tc::target::jit
