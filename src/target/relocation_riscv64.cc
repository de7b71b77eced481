// SPDX-License-Identifier: Apache-2.0
#include <elf.h>

#include "target/relocation.h"

namespace tc::target {

Relocation riscv64_relocation(uint32_t type) noexcept {
  switch (type) {
    case R_RISCV_NONE: return Relocation::nothing;
    case R_RISCV_RELATIVE: return Relocation::relative;
    case R_RISCV_64:
    case R_RISCV_JUMP_SLOT: return Relocation::symbol;
    default: return Relocation::unknown;
  }
}

}  // namespace tc::target
