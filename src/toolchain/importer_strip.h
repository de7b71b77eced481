// SPDX-License-Identifier: Apache-2.0
//
// The importer's stripping: drops what belongs to the machine that compiled the code, or makes it into another's.
//
// Threads: the one that owns the module.
#pragma once

#include "toolchain/importer.h"

namespace tc::toolchain {

// Before optimising: drops what ties the code to one CPU, or keeps functions from being inlined.
void strip_cpu(llvm::Module& module);

// Makes the module into one for another triple, for front ends that cannot cross-compile. Sound only for code that says
// nothing about its CPU or its calling convention. TC_ERR_INVALID names what does, and where it stands.
Status retarget(llvm::Module& module, const std::string& triple, const std::string& label);

// After checking: drops everything that neither meaning nor speed at the target needs. Code that `unwinds` keeps what
// its frame tables are made from.
void strip_for_travel(llvm::Module& module, bool unwinds);

}  // namespace tc::toolchain
