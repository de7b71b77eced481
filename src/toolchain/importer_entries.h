// SPDX-License-Identifier: Apache-2.0
//
// The importer's first step: what can be called from outside. Entry points get their fixed symbols, a library's
// functions and data are made visible (2021 paper, section 2.1), and static constructors move into the entries.
//
// Threads: the one that owns the module.
#pragma once

#include "toolchain/importer.h"

namespace tc::toolchain {

// Finds the entry points, renames them to their fixed symbols and follows all aliases; takes the payload's alignment
// and the names of libraries out of the module. Returns all of Imported but the code.
Result<Imported> settle_entries(llvm::Module& module, const ImportOptions& options);

// For --allow-ctors. No loader runs static constructors, so the entries do: the first call of each copy of the code
// constructs. Destructors never run, because code is freed without a call to it.
void construct_on_first_call(llvm::Module& module, const std::vector<std::string>& entries);

}  // namespace tc::toolchain
