// SPDX-License-Identifier: Apache-2.0
//
// The compiler and the linker inside a self-contained build: clang's driver with the part of its front end that compiles
// C, C++ and LLVM IR, and lld for ELF. No analyser, formatter or language server.
//
// Thread: the program's only one, once.
#pragma once

#include <vector>

namespace tc::toolchain::built_in {

// Runs clang in this process: `arguments[0]` is "clang" or "clang++", the rest as on its command line. `program` is this
// process's own path or name. Returns its exit status; it writes to standard error. LLVM's code generators are set up.
int clang(const char* program, const std::vector<const char*>& arguments);

// Runs lld in this process: `arguments[0]` is "ld.lld", the rest as on its command line. Returns its exit status; it
// writes to standard error.
int lld(const std::vector<const char*>& arguments);

}  // namespace tc::toolchain::built_in
