// SPDX-License-Identifier: Apache-2.0
//
// Libraries: ifuncs that define functions and data for other ifuncs (2021 paper, section 2.1).
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include <algorithm>

#include "toolchain/importer.h"
#include "toolchain/resolve.h"
#include "wire/abi_names.h"

namespace tc::toolchain {

namespace {

bool is_entry(llvm::StringRef name) {
  for (const char* entry :
       {abi_names::main, abi_names::payload_get_max_size, abi_names::payload_init, abi_names::payload_bound})
    if (name == entry) return true;
  return false;
}

}  // namespace

bool is_for_others(const llvm::GlobalValue& value) {
  return !value.isDeclaration() && !value.hasLocalLinkage() && !value.hasAvailableExternallyLinkage() &&
         !value.hasHiddenVisibility() && !value.getName().starts_with("llvm.") &&
         !value.getName().starts_with(abi_names::payload_alignment) && !is_entry(value.getName());
}

void ensure_main(llvm::Module& module, const ImportOptions& options) {
  const auto name = options.name + abi_names::main_suffix;
  if (!options.library || module.getNamedValue(name) != nullptr) return;
  auto& context = module.getContext();
  auto* const pointer = llvm::PointerType::getUnqual(context);
  auto* const type = llvm::FunctionType::get(llvm::Type::getVoidTy(context),
                                             {pointer, llvm::Type::getInt64Ty(context), pointer}, false);
  auto* const main = llvm::Function::Create(type, llvm::GlobalValue::ExternalLinkage, name, module);
  llvm::IRBuilder<>(llvm::BasicBlock::Create(context, "", main)).CreateRetVoid();
}

Result<std::vector<std::string>> take_exports(llvm::Module& module, const ImportOptions& options) {
  std::vector<std::string> exports;
  if (!options.library) return exports;
  for (auto& value : module.global_values()) {
    if (!is_for_others(value)) continue;
    const auto name = value.getName().str();
    if (is_ifunc_abi(name) || is_compiler_runtime(name))
      return fail(TC_ERR_INVALID,
                  "{}: a library cannot export '{}', which every ifunc has already; give it another name",
                  options.label, name);
    value.setLinkage(llvm::GlobalValue::ExternalLinkage);
    value.setVisibility(llvm::GlobalValue::DefaultVisibility);
    if (auto* const object = llvm::dyn_cast<llvm::GlobalObject>(&value)) {
      object->setComdat(nullptr);
      object->setSection("");
    }
    exports.push_back(name);
  }
  if (exports.empty())
    return fail(TC_ERR_INVALID, "{}: a library that defines nothing for others: every function and variable is static",
                options.label);
  std::sort(exports.begin(), exports.end());
  return exports;
}

}  // namespace tc::toolchain
