// SPDX-License-Identifier: Apache-2.0
#include "target/jit/link_memory.h"

#include <llvm/ADT/BitmaskEnum.h>
#include <llvm/ExecutionEngine/JITLink/JITLink.h>

#include <algorithm>
#include <cstring>

namespace tc::target::jit {

Allocation::~Allocation() {
  if (!owner_) return;
  const std::lock_guard lock(owner_->mutex_);
  owner_->arena_.release(placement_);
}

Status Allocation::seal() {
  const std::lock_guard lock(owner_->mutex_);
  return owner_->arena_.seal(placement_);
}

Result<std::shared_ptr<CodeArena>> CodeArena::create() {
  TC_ASSIGN(auto arena, memory::Arena::create(memory::Arena::Kind::shared));
  auto& own = *arena;
  return std::shared_ptr<CodeArena>(new CodeArena(std::move(arena), own));
}

std::shared_ptr<CodeArena> CodeArena::around(memory::Arena& arena) {
  return std::shared_ptr<CodeArena>(new CodeArena(nullptr, arena));
}

Result<Allocation> CodeArena::allocate(size_t text_bytes, size_t data_bytes, size_t alignment) {
  const std::lock_guard lock(mutex_);
  TC_ASSIGN(const auto placement, arena_.place(text_bytes, data_bytes, alignment));
  return Allocation(shared_from_this(), placement);
}

namespace {

using llvm::jitlink::BasicLayout;
using llvm::orc::MemProt;
LLVM_ENABLE_BITMASK_ENUMS_IN_NAMESPACE();

bool has(MemProt protection, MemProt what) { return (protection & what) != MemProt::None; }

size_t size_of(const BasicLayout::Segment& segment) { return segment.ContentSize + segment.ZeroFillSize; }

// How far a half of the placement is filled.
struct Half {
  size_t filled = 0;

  // The offset of the segment in it. Cannot overflow: the caller has bounded the segment's size.
  size_t add(const BasicLayout::Segment& segment) {
    const auto offset = llvm::alignTo(filled, segment.Alignment);
    filled = offset + size_of(segment);
    return offset;
  }
};

}  // namespace

class LinkMemory::InFlight final : public InFlightAlloc {
 public:
  explicit InFlight(LinkMemory& memory) : memory_(memory) {}

  void abandon(OnAbandonedFunction on_abandoned) override {
    memory_.allocation_ = {};
    on_abandoned(llvm::Error::success());
  }

  void finalize(OnFinalizedFunction on_finalized) override {
    if (auto sealed = memory_.allocation_.seal(); !sealed) {
      memory_.allocation_ = {};
      return on_finalized(memory_.note(std::move(sealed).error()));
    }
    // JITLink wants a token; the memory itself is taken by take().
    on_finalized(FinalizedAlloc(llvm::orc::ExecutorAddr::fromPtr(&memory_)));
  }

 private:
  LinkMemory& memory_;
};

llvm::Error LinkMemory::note(Error error) {
  error_ = std::move(error);
  return llvm::createStringError("no memory for the code");
}

Status LinkMemory::lay_out(BasicLayout& layout) {
  Half text, data;
  size_t alignment = 1;
  for (auto& [group, segment] : layout.segments()) {
    const auto protection = group.getMemProt();
    if (has(protection, MemProt::Write) && has(protection, MemProt::Exec))
      return fail(TC_ERR_COMPILE, "the object has a section that is both writable and executable");
    if (segment.ContentSize > memory::image_half || segment.ZeroFillSize > memory::image_half)
      return fail(TC_ERR_TOO_LARGE, "the object has {} bytes in one segment when at most {} are allowed",
                  std::max(uint64_t{segment.ContentSize}, segment.ZeroFillSize), memory::image_half);
    // Placements are aligned to a page at most; JITLink counts on what the object asks for.
    if (segment.Alignment.value() > 4096)
      return fail(TC_ERR_TOO_LARGE, "the object wants data aligned to {} bytes when 4096 is the most",
                  segment.Alignment.value());
    alignment = std::max(alignment, static_cast<size_t>(segment.Alignment.value()));
    (has(protection, MemProt::Write) ? data : text).add(segment);
  }
  TC_ASSIGN(allocation_, memory_.allocate(text.filled, data.filled, alignment));
  const auto& placement = allocation_.placement();
  if (data.filled > 0) std::memset(placement.data, 0, data.filled);
  text = data = {};
  for (auto& [group, segment] : layout.segments()) {
    if (has(group.getMemProt(), MemProt::Write)) {
      const auto offset = data.add(segment);
      segment.Addr = llvm::orc::ExecutorAddr::fromPtr(placement.data + offset);
      segment.WorkingMem = reinterpret_cast<char*>(placement.data + offset);
    } else {
      const auto offset = text.add(segment);
      segment.Addr = llvm::orc::ExecutorAddr::fromPtr(placement.text + offset);
      segment.WorkingMem = reinterpret_cast<char*>(placement.writable + offset);
    }
  }
  return {};
}

void LinkMemory::allocate(const llvm::jitlink::JITLinkDylib*, llvm::jitlink::LinkGraph& graph,
                          OnAllocatedFunction on_allocated) {
  BasicLayout layout(graph);
  if (auto laid_out = lay_out(layout); !laid_out) return on_allocated(note(std::move(laid_out).error()));
  if (auto error = layout.apply()) return on_allocated(std::move(error));
  on_allocated(std::make_unique<InFlight>(*this));
}

void LinkMemory::deallocate(std::vector<FinalizedAlloc> allocations, OnDeallocatedFunction on_deallocated) {
  for (auto& allocation : allocations) (void)allocation.release();
  allocation_ = {};
  on_deallocated(llvm::Error::success());
}

}  // namespace tc::target::jit
