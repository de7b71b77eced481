// SPDX-License-Identifier: Apache-2.0
#include "target/jit/code_memory.h"

namespace tc::target::jit {

Allocation::~Allocation() {
  if (!owner_) return;
  const std::lock_guard lock(owner_->mutex_);
  owner_->arena_->release(placement_);
}

Status Allocation::seal() {
  const std::lock_guard lock(owner_->mutex_);
  return owner_->arena_->seal(placement_);
}

Result<std::shared_ptr<CodeMemory>> CodeMemory::create() {
  TC_ASSIGN(auto arena, memory::Arena::create(memory::Arena::Kind::shared));
  return std::shared_ptr<CodeMemory>(new CodeMemory(std::move(arena)));
}

Result<Allocation> CodeMemory::allocate(size_t text_bytes, size_t data_bytes, size_t alignment) {
  const std::lock_guard lock(mutex_);
  TC_ASSIGN(const auto placement, arena_->place(text_bytes, data_bytes, alignment));
  return Allocation(shared_from_this(), placement);
}

}  // namespace tc::target::jit
