// SPDX-License-Identifier: Apache-2.0
//
// Places an object slice in an arena, applies its relocations and makes it executable: bytes to callable code in
// half a microsecond for a small ifunc. One loader for every ISA; the ISA's relocations are in wire/object_format.cc.
//
// Thread: that of the arena.
#pragma once

#include "memory/arena.h"
#include "target/jit_plugin.h"

namespace tc::target {

class ElfImage;

// An image in an arena, which must outlive it. Destroying it frees the memory; nothing of it may be running.
class LoadedImage {
 public:
  LoadedImage() = default;
  LoadedImage(memory::Arena& arena, const memory::Placement& placement) noexcept
      : arena_(&arena), placement_(placement) {}
  LoadedImage(LoadedImage&& other) noexcept { swap(other); }
  LoadedImage& operator=(LoadedImage&& other) noexcept {
    LoadedImage(std::move(other)).swap(*this);
    return *this;
  }
  ~LoadedImage() {
    if (arena_ != nullptr) arena_->release(placement_);
  }

  // Where an address of the image came to lie.
  void* at(uint64_t address) const noexcept { return placement_.text + address; }
  // Memory taken in both halves; 0 when nothing is loaded.
  size_t bytes() const noexcept { return placement_.bytes + placement_.data_bytes; }
  // Does the address lie in its text?
  bool holds(uintptr_t address) const noexcept { return address - text() < placement_.bytes; }
  // Where its text begins.
  uintptr_t text() const noexcept { return reinterpret_cast<uintptr_t>(placement_.text); }

 private:
  void swap(LoadedImage& other) noexcept {
    std::swap(arena_, other.arena_);
    std::swap(placement_, other.placement_);
  }

  memory::Arena* arena_ = nullptr;
  memory::Placement placement_;
};

// `resolve` gives each undefined symbol its address; its errors are passed on unchanged, but a weak symbol that it
// does not know becomes null. TC_ERR_MALFORMED for relocations that are unknown or reach outside the data half,
// and the arena's errors.
Result<LoadedImage> load_image(const ElfImage& image, memory::Arena& arena, const SymbolResolver& resolve);

}  // namespace tc::target
