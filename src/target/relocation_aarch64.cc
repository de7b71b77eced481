// SPDX-License-Identifier: Apache-2.0
#include <elf.h>

#include "target/relocation.h"

namespace tc::target {

Relocation aarch64_relocation(uint32_t type) noexcept {
  switch (type) {
    case R_AARCH64_NONE:
    case 256: return Relocation::nothing;  // 256: NONE as older linkers wrote it
    case R_AARCH64_RELATIVE: return Relocation::relative;
    case R_AARCH64_ABS64:
    case R_AARCH64_GLOB_DAT:
    case R_AARCH64_JUMP_SLOT: return Relocation::symbol;
    default: return Relocation::unknown;
  }
}

}  // namespace tc::target
