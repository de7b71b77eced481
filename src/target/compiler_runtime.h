// SPDX-License-Identifier: Apache-2.0
//
// Functions that compilers call by themselves (wire/abi_names.h): memory functions, 128-bit arithmetic, and on aarch64
// the outlined atomics. Every ifunc may use them, because they change only memory that they are given.
//
// Thread: any.
#pragma once

#include <string_view>

namespace tc::target {

// Null for any other name, and for functions that this ISA's compiler runtime does not have.
void* compiler_runtime_symbol(std::string_view name) noexcept;

}  // namespace tc::target
