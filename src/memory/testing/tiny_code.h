// SPDX-License-Identifier: Apache-2.0
//
// Functions of this processor, for tests of memory for code: int f(void) { return N; }
#pragma once

#include <cstddef>
#include <cstring>

#include "memory/code_mapping.h"

namespace tc::memory::testing {

#if defined(__x86_64__)
inline constexpr unsigned char returns_1[] = {0xB8, 1, 0, 0, 0, 0xC3};
inline constexpr unsigned char returns_2[] = {0xB8, 2, 0, 0, 0, 0xC3};
#elif defined(__aarch64__)
inline constexpr unsigned char returns_1[] = {0x20, 0x00, 0x80, 0x52, 0xC0, 0x03, 0x5F, 0xD6};
inline constexpr unsigned char returns_2[] = {0x40, 0x00, 0x80, 0x52, 0xC0, 0x03, 0x5F, 0xD6};
#elif defined(__riscv)
inline constexpr unsigned char returns_1[] = {0x05, 0x45, 0x82, 0x80};
inline constexpr unsigned char returns_2[] = {0x09, 0x45, 0x82, 0x80};
#endif
static_assert(sizeof returns_1 == sizeof returns_2);

inline int call(std::byte* code) {
  sync_instructions(code, sizeof returns_1);
  return reinterpret_cast<int (*)()>(code)();
}

}  // namespace tc::memory::testing
