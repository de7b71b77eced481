// SPDX-License-Identifier: Apache-2.0
//
// What freed code is overwritten with: a jump into code that is gone stops there, and does not run what is left.
//
// Thread: any.
#pragma once

#include <cstddef>
#include <cstring>

namespace tc::memory {

// `size` is a multiple of 4.
inline void fill_with_traps(std::byte* at, size_t size) noexcept {
#if defined(__x86_64__)
  std::memset(at, 0xCC, size);  // int3
#else
#if defined(__aarch64__)
  constexpr unsigned char trap[4] = {0x00, 0x00, 0x20, 0xD4};  // brk #0
#else
  constexpr unsigned char trap[4] = {0x02, 0x90, 0x02, 0x90};  // c.ebreak, twice
#endif
  for (size_t i = 0; i + 4 <= size; i += 4) std::memcpy(at + i, trap, 4);
#endif
}

}  // namespace tc::memory
