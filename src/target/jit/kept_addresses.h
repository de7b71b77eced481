// SPDX-License-Identifier: Apache-2.0
//
// Finds code that must not be exchanged for another compilation of the same bitcode. Both use the same variables, and the same
// constants where these can be named from outside, so what the first one stored there, the second one reads. Data is the same
// to both. Addresses of code are not: the address of a label (&&label) leads into the first compilation, and a function has one
// address in each.
//
// Threads: the one that owns the module.
#pragma once

#include <llvm/IR/Module.h>

namespace tc::target::jit {

// Returns whether the address of a label may be stored where a later call finds it, or that of a function in code that compares
// addresses of functions. To call a stored function is no reason: the first compilation stays in memory. Each address is
// followed through the code; what cannot be followed counts as stored.
bool keeps_code_addresses(const llvm::Module& module);

}  // namespace tc::target::jit
