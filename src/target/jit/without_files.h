// SPDX-License-Identifier: Apache-2.0
//
// Bitcode may hold assembly, and the directives `.incbin` and `.include` of LLVM's assembler read any file of the process that
// compiles. Whose bitcode it is decides whether assembly is taken at all (jit_plugin.h); that no file is read holds for everybody.
//
// Threads: any.
#pragma once

#include <llvm/MC/TargetRegistry.h>

namespace tc::target::jit {

// The same code generator, with an assembler that finds no files. What is made of it must not outlive it.
llvm::Target without_files(const llvm::Target& target);

}  // namespace tc::target::jit
