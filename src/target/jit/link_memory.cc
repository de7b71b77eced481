// SPDX-License-Identifier: Apache-2.0
#include "target/jit/link_memory.h"

#include <llvm/ADT/BitmaskEnum.h>
#include <llvm/ExecutionEngine/JITLink/JITLink.h>
#include <llvm/Support/Memory.h>

#include <algorithm>

namespace tc::target::jit {

namespace {

using llvm::jitlink::BasicLayout;
using llvm::orc::MemProt;

LLVM_ENABLE_BITMASK_ENUMS_IN_NAMESPACE();

bool has(MemProt protection, MemProt what) { return (protection & what) != MemProt::None; }

Use use_of(MemProt protection) {
  if (has(protection, MemProt::Write)) return Use::data;
  if (has(protection, MemProt::Exec)) return Use::code;
  return Use::constants;
}

size_t size_of(const BasicLayout::Segment& segment) { return segment.ContentSize + segment.ZeroFillSize; }

llvm::Error stopped() { return llvm::createStringError("no memory for the code"); }

}  // namespace

class LinkMemory::InFlight final : public InFlightAlloc {
 public:
  explicit InFlight(LinkMemory& memory) : memory_(memory) {}

  void abandon(OnAbandonedFunction on_abandoned) override {
    memory_.allocation_ = {};
    on_abandoned(llvm::Error::success());
  }

  void finalize(OnFinalizedFunction on_finalized) override {
    const auto& code = memory_.allocation_[Use::code];
    llvm::sys::Memory::InvalidateInstructionCache(code.address, code.size);
    // JITLink wants a token; the allocation itself is taken by take().
    on_finalized(FinalizedAlloc(llvm::orc::ExecutorAddr::fromPtr(&memory_)));
  }

 private:
  LinkMemory& memory_;
};

Status LinkMemory::lay_out(BasicLayout& layout) {
  std::array<Need, use_count> needs;
  for (auto& [group, segment] : layout.segments()) {
    const auto protection = group.getMemProt();
    if (has(protection, MemProt::Write) && has(protection, MemProt::Exec))
      return fail(TC_ERR_COMPILE, "the object has a section that is both writable and executable");
    auto& need = needs[static_cast<size_t>(use_of(protection))];
    const auto alignment = static_cast<size_t>(segment.Alignment.value());
    if (size_of(segment) > Slabs::largest_piece || need.size > Slabs::largest_piece)
      return fail(TC_ERR_TOO_LARGE, "the object has a section of {} bytes when {} are allowed", size_of(segment),
                  Slabs::largest_piece);
    need.alignment = std::max(need.alignment, alignment);
    need.size = llvm::alignTo(need.size, segment.Alignment) + size_of(segment);
  }
  TC_ASSIGN(allocation_, slabs_.allocate(needs));
  std::array<size_t, use_count> filled{};
  for (auto& [group, segment] : layout.segments()) {
    const auto use = use_of(group.getMemProt());
    auto& offset = filled[static_cast<size_t>(use)];
    offset = llvm::alignTo(offset, segment.Alignment);
    segment.Addr = llvm::orc::ExecutorAddr::fromPtr(allocation_[use].address + offset);
    segment.WorkingMem = reinterpret_cast<char*>(allocation_[use].writable + offset);
    offset += size_of(segment);
  }
  return {};
}

void LinkMemory::allocate(const llvm::jitlink::JITLinkDylib*, llvm::jitlink::LinkGraph& graph,
                          OnAllocatedFunction on_allocated) {
  BasicLayout layout(graph);
  if (auto laid_out = lay_out(layout); !laid_out) {
    error_ = std::move(laid_out).error();
    return on_allocated(stopped());
  }
  if (auto error = layout.apply()) return on_allocated(std::move(error));
  on_allocated(std::make_unique<InFlight>(*this));
}

void LinkMemory::deallocate(std::vector<FinalizedAlloc> allocations, OnDeallocatedFunction on_deallocated) {
  for (auto& allocation : allocations) (void)allocation.release();
  allocation_ = {};
  on_deallocated(llvm::Error::success());
}

}  // namespace tc::target::jit
