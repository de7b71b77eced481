// SPDX-License-Identifier: Apache-2.0
//
// The O3 pipeline for this CPU, over bitcode that stopped before optimisations which need to know the CPU
// (`-flto=thin` pre-link form).
#pragma once

#include <llvm/IR/Module.h>
#include <llvm/Target/TargetMachine.h>

namespace tc::target::jit {

// `module` fits the host already and is valid. Any thread, as long as no other thread uses `machine` and the context.
void optimize(llvm::Module& module, llvm::TargetMachine& machine);

}  // namespace tc::target::jit
