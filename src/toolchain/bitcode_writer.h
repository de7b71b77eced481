// SPDX-License-Identifier: Apache-2.0
//
// Bitcode in the fewest bytes that LLVM's own reader takes.
//
// Thread: the module's; nothing is shared.
#pragma once

#include "base/bytes.h"

namespace llvm {
class Module;
}

namespace tc::toolchain {

// What LLVM writes, less the symbol table.
Bytes write_bitcode(const llvm::Module& module);

// The same, rewritten: no identification, no tables of names that the code does not use, no index for reading
// functions lazily, and abbreviations only where they pay. Falls back on write_bitcode() when LLVM does not read
// the result back as the same code (a safety net: it should not happen).
Bytes write_smallest_bitcode(const llvm::Module& module);

}  // namespace tc::toolchain
