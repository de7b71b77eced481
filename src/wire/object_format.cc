// SPDX-License-Identifier: Apache-2.0
#include "wire/object_format.h"

#include <algorithm>
#include <array>

namespace tc::object_format {

namespace {

constexpr uint32_t old_aarch64_none = 256;  // R_AARCH64_NONE as older linkers wrote it
constexpr uint32_t no_more = ~uint32_t{0};

struct Processor {
  Arch arch;
  uint16_t machine;
  uint32_t relative;
  std::array<uint32_t, 2> nothing;
  std::array<uint32_t, 3> symbol;
};

// A new processor is one line here, and one in wire/target_triple.cc.
constexpr Processor processors[] = {
    {Arch::x86_64,
     EM_X86_64,
     R_X86_64_RELATIVE,
     {R_X86_64_NONE, no_more},
     {R_X86_64_64, R_X86_64_GLOB_DAT, R_X86_64_JUMP_SLOT}},
    {Arch::aarch64,
     EM_AARCH64,
     R_AARCH64_RELATIVE,
     {R_AARCH64_NONE, old_aarch64_none},
     {R_AARCH64_ABS64, R_AARCH64_GLOB_DAT, R_AARCH64_JUMP_SLOT}},
    {Arch::riscv64, EM_RISCV, R_RISCV_RELATIVE, {R_RISCV_NONE, no_more}, {R_RISCV_64, R_RISCV_JUMP_SLOT, no_more}},
};

bool contains(const auto& list, uint32_t value) noexcept { return std::ranges::find(list, value) != std::end(list); }

}  // namespace

uint16_t elf_machine(Arch arch) noexcept {
  const auto* const found = std::ranges::find(processors, arch, &Processor::arch);
  return found != std::end(processors) ? found->machine : uint16_t{EM_NONE};
}

Arch arch_of_elf(uint16_t machine) noexcept {
  const auto* const found = std::ranges::find(processors, machine, &Processor::machine);
  return found != std::end(processors) ? found->arch : Arch::none;
}

Relocation relocation_of(Arch arch, uint32_t type) noexcept {
  const auto* const found = std::ranges::find(processors, arch, &Processor::arch);
  if (found == std::end(processors) || type == no_more) return Relocation::unknown;
  if (type == found->relative) return Relocation::relative;
  if (contains(found->symbol, type)) return Relocation::symbol;
  return contains(found->nothing, type) ? Relocation::nothing : Relocation::unknown;
}

}  // namespace tc::object_format
