// SPDX-License-Identifier: Apache-2.0
//
// The first half of `ifunc build`: from source files to imported code, one unit for each target.
//
// Thread: the program's only one.
#pragma once

#include <llvm/IR/LLVMContext.h>

#include <memory>
#include <string>
#include <vector>

#include "toolchain/build.h"
#include "toolchain/frontend.h"
#include "toolchain/importer.h"

namespace tc::toolchain {

// One triple's code, imported. The context owns what the modules are made of.
struct Unit {
  std::string triple;
  std::unique_ptr<llvm::LLVMContext> context = std::make_unique<llvm::LLVMContext>();
  Imported imported;
};

// Compiles the source file for each target of the request, or reads its bitcode files, and imports what comes out.
// TC_ERR_INVALID when two of them are for the same target; else the errors of the front ends and of the importer.
Result<std::vector<Unit>> import_units(const BuildRequest& request, const std::string& name, Language language);

}  // namespace tc::toolchain
