// SPDX-License-Identifier: Apache-2.0
#include "target/loader.h"

#include <cstring>
#include <vector>

#include "target/elf_image.h"
#include "wire/object_format.h"

namespace tc::target {

namespace {

using object_format::Relocation;

void copy_half(std::byte* to, const ElfImage::Half& half) noexcept {
  if (!half.bytes.empty()) std::memcpy(to, half.bytes.data(), half.bytes.size());
  if (half.size > half.bytes.size()) std::memset(to + half.bytes.size(), 0, half.size - half.bytes.size());
}

// Applies the relocations of one image that was copied to its place.
class Relocator {
 public:
  Relocator(const ElfImage& image, std::byte* base, const SymbolResolver& resolve) noexcept
      : image_(image), base_(base), resolve_(resolve) {}

  Status apply_all() {
    for (size_t i = 0, count = image_.relocation_count(); i < count; ++i) TC_CHECK(apply(image_.relocation(i)));
    return {};
  }

 private:
  Status apply(const Elf64_Rela& r) {
    const auto type = static_cast<uint32_t>(ELF64_R_TYPE(r.r_info));
    const auto kind = object_format::relocation_of(image_.arch(), type);
    if (kind == Relocation::nothing) return {};
    if (kind == Relocation::unknown)
      return fail(TC_ERR_MALFORMED, "relocation of type {} at {:#x} is not one that {} ifuncs may have", type,
                  r.r_offset, arch_name(image_.arch()));
    if (!image_.in_data(r.r_offset, sizeof(uint64_t)))
      return fail(TC_ERR_MALFORMED, "relocation at {:#x} lies outside the data half, which is {} bytes at {:#x}",
                  r.r_offset, image_.data().size, object_format::image_half);
    auto value = static_cast<uint64_t>(r.r_addend);
    if (kind == Relocation::relative) {
      if (!image_.contains(value))
        return fail(TC_ERR_MALFORMED, "relocation at {:#x} points to {:#x}, outside the image", r.r_offset, value);
      value += address_of(base_);
    } else {
      TC_ASSIGN(const auto symbol, address_of_symbol(ELF64_R_SYM(r.r_info)));
      value += symbol;
    }
    std::memcpy(base_ + r.r_offset, &value, sizeof value);
    return {};
  }

  static uint64_t address_of(const void* at) noexcept { return reinterpret_cast<uintptr_t>(at); }

  Result<uint64_t> address_of_symbol(size_t index) {
    if (index == last_index_) return last_address_;  // a function is often named twice in a row
    TC_ASSIGN(const auto symbol, image_.symbol(index));
    uint64_t address = 0;
    if (symbol.defined) {
      address = address_of(base_) + symbol.address;
    } else if (!symbol.name.empty()) {
      auto found = resolve_(std::string(symbol.name));
      if (!found && !(symbol.weak && found.error().code == TC_ERR_UNRESOLVED)) return fail(std::move(found).error());
      if (found) address = address_of(*found);
    }
    last_index_ = index;
    last_address_ = address;
    return address;
  }

  const ElfImage& image_;
  std::byte* const base_;
  const SymbolResolver& resolve_;
  size_t last_index_ = SIZE_MAX;
  uint64_t last_address_ = 0;
};

}  // namespace

Result<LoadedImage> load_image(const ElfImage& image, memory::Arena& arena, const SymbolResolver& resolve) {
  TC_ASSIGN(const auto placement, arena.place(image.text().size, image.data().size, image.alignment()));
  LoadedImage loaded(arena, placement);
  copy_half(placement.writable, image.text());
  if (image.data().size != 0) copy_half(placement.data, image.data());
  TC_CHECK(Relocator(image, placement.text, resolve).apply_all());
  TC_CHECK(arena.seal(placement));
  return loaded;
}

}  // namespace tc::target
