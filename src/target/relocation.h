// SPDX-License-Identifier: Apache-2.0
//
// The dynamic relocations that an object slice may have, by ISA. There are few, because the linker has resolved
// everything that does not depend on where the image lands; so one loader serves every ISA.
#pragma once

#include <cstdint>

#include "wire/target_triple.h"

namespace tc::target {

enum class Relocation : uint8_t {
  unknown,
  nothing,   // a placeholder
  relative,  // the image's place + addend
  symbol,    // the symbol's address + addend
};

// What the ELF relocation `type` of each ISA asks for.
Relocation x86_64_relocation(uint32_t type) noexcept;
Relocation aarch64_relocation(uint32_t type) noexcept;
Relocation riscv64_relocation(uint32_t type) noexcept;

inline Relocation relocation_of(Arch arch, uint32_t type) noexcept {
  switch (arch) {
    case Arch::x86_64: return x86_64_relocation(type);
    case Arch::aarch64: return aarch64_relocation(type);
    case Arch::riscv64: return riscv64_relocation(type);
    default: return Relocation::unknown;
  }
}

}  // namespace tc::target
