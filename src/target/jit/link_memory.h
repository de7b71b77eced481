// SPDX-License-Identifier: Apache-2.0
//
// Gives JITLink memory for one link: code and constants in the half of a placement that can be executed and not
// written, data in the other.
//
// Thread: the one that links.
#pragma once

#include <llvm/ExecutionEngine/JITLink/JITLinkMemoryManager.h>

#include <optional>

#include "target/jit/code_memory.h"

namespace tc::target::jit {

class LinkMemory final : public llvm::jitlink::JITLinkMemoryManager {
 public:
  explicit LinkMemory(CodeMemory& memory) : memory_(memory) {}

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

  CodeMemory& memory_;
  Allocation allocation_;
  std::optional<Error> error_;
};

}  // namespace tc::target::jit
