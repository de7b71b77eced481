// SPDX-License-Identifier: Apache-2.0
//
// The importer's checks: refuses what cannot travel, and names the author's line. TC_ERR_INVALID unless said otherwise.
//
// Threads: the one that owns the module.
#pragma once

#include "toolchain/importer.h"

namespace llvm {
class Instruction;
}

namespace tc::toolchain {

// Before reducing, which forgets sections: refuses static constructors that an author put into a loader's list by hand.
Status check_sections(const llvm::Module& module, const ImportOptions& options);

// Refuses addresses, thread-locals, assembly, another CPU's instructions, and what runs before the entry.
// TC_ERR_TOO_LARGE: more variables than a node has room for.
Status check_can_travel(const llvm::Module& module, const ImportOptions& options);

// The symbols that the target must define, sorted.
std::vector<Undefined> undefined_symbols(const llvm::Module& module, const std::string& label);

// "foo.c:12": the author's line that this comes from, or `label` when the bitcode has no positions.
std::string position(const llvm::Instruction& at, const std::string& label);
// The same, but for code in a function of the language's library that is not in line, the only place where the author
// calls that function.
std::string position_of_author(const llvm::Instruction& at, const std::string& label);

}  // namespace tc::toolchain
