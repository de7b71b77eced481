// SPDX-License-Identifier: Apache-2.0
//
// Gives names to the variables that the code can write. A target that replaces one slice's code by another's finds them by
// these, so that both use the variables of the first (docs/code-cache.md).
#include <llvm/IR/Module.h>

#include "toolchain/importer.h"
#include "wire/abi_names.h"

namespace tc::toolchain {

void name_variables(llvm::Module& module) {
  unsigned number = 0;
  for (auto& variable : module.globals()) {
    if (variable.isConstant() || !variable.hasLocalLinkage() || variable.getName().starts_with("llvm.")) continue;
    variable.setName(fmt::format("{}{}", abi_names::variable_prefix, number++));
    variable.setLinkage(llvm::GlobalValue::ExternalLinkage);
    variable.setDSOLocal(false);  // it may lie far from the code that uses it
    variable.setUnnamedAddr(llvm::GlobalValue::UnnamedAddr::None);
  }
}

}  // namespace tc::toolchain
