// SPDX-License-Identifier: Apache-2.0
//
// clang's driver with the part of its front end that compiles C, C++ and LLVM IR: what `ifunc build` asks of it, and no
// analyser, formatter or language server.
#pragma once

#include <vector>

namespace tc::toolchain::built_in {

// Runs clang in this process: `arguments[0]` is "clang" or "clang++", the rest as on its command line. `program` is this
// process's own path or name. Returns its exit status; it writes to standard error. LLVM's code generators are set up.
// Thread: the program's only one, once.
int clang(const char* program, const std::vector<const char*>& arguments);

}  // namespace tc::toolchain::built_in
