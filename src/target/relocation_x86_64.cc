// SPDX-License-Identifier: Apache-2.0
#include <elf.h>

#include "target/relocation.h"

namespace tc::target {

Relocation x86_64_relocation(uint32_t type) noexcept {
  switch (type) {
    case R_X86_64_NONE: return Relocation::nothing;
    case R_X86_64_RELATIVE: return Relocation::relative;
    case R_X86_64_64:
    case R_X86_64_GLOB_DAT:
    case R_X86_64_JUMP_SLOT: return Relocation::symbol;
    default: return Relocation::unknown;
  }
}

}  // namespace tc::target
