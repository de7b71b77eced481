// SPDX-License-Identifier: Apache-2.0
//
// What compilers call without the author having written a call: memory functions, 128-bit arithmetic, and on
// aarch64 the outlined atomics. Every ifunc may use them; they compute and touch only memory that they are given.
#pragma once

#include <string_view>

namespace tc::target {

// Null for any other name, and for functions that this ISA's compiler runtime does not have.
void* compiler_runtime_symbol(std::string_view name) noexcept;

}  // namespace tc::target
