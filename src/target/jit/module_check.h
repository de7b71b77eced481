// SPDX-License-Identifier: Apache-2.0
//
// Makes a parsed module fit this host, or says why it cannot be.
#pragma once

#include <llvm/IR/Module.h>

#include "target/jit/host.h"

namespace tc::target::jit {

// Refuses what the linker could not load (thread-locals, static constructors) and what was made for another
// architecture, then gives the module the host's triple and data layout and its functions the host's CPU.
// TC_ERR_COMPILE names both values.
Status fit_to_host(llvm::Module& module, const Host& host, const llvm::TargetMachine& machine);

}  // namespace tc::target::jit
