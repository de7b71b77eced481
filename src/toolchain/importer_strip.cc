// SPDX-License-Identifier: Apache-2.0
#include <llvm/Analysis/CFG.h>
#include <llvm/IR/AttributeMask.h>
#include <llvm/IR/Attributes.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/DebugInfo.h>
#include <llvm/IR/InstrTypes.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/TypeFinder.h>

#include "toolchain/importer.h"
#include "toolchain/resolve.h"

namespace tc::toolchain {

namespace {

// String attributes that say what the code means. All others say how one CPU likes it; the target knows better.
bool has_meaning(llvm::StringRef attribute) {
  return attribute.starts_with("no-builtin") || attribute.starts_with("denormal-fp-math") || attribute == "strictfp" ||
         attribute.starts_with("alloc-");
}

// What a definition's own optimiser finds out again from its body. `noalias`, alignment, calling convention and
// whatever else the author said, or the body does not show, stays.
constexpr llvm::Attribute::AttrKind inferred_of_functions[] = {
    llvm::Attribute::Memory,     llvm::Attribute::NoFree,     llvm::Attribute::NoRecurse,   llvm::Attribute::NoSync,
    llvm::Attribute::WillReturn, llvm::Attribute::NoCallback, llvm::Attribute::MustProgress};
constexpr llvm::Attribute::AttrKind inferred_of_values[] = {
    llvm::Attribute::ReadNone,    llvm::Attribute::ReadOnly, llvm::Attribute::WriteOnly, llvm::Attribute::Captures,
    llvm::Attribute::Initializes, llvm::Attribute::NoFree,   llvm::Attribute::NoUndef};

llvm::AttributeList without_strings(llvm::LLVMContext& context, llvm::AttributeList list) {
  llvm::AttributeMask dropped;
  for (const auto attribute : list.getFnAttrs())
    if (attribute.isStringAttribute() && !has_meaning(attribute.getKindAsString())) dropped.addAttribute(attribute);
  return list.removeFnAttributes(context, dropped);
}

llvm::AttributeList without_inferred(llvm::LLVMContext& context, llvm::AttributeList list, size_t parameters) {
  for (const auto kind : inferred_of_functions) list = list.removeFnAttribute(context, kind);
  for (const auto kind : inferred_of_values) {
    list = list.removeRetAttribute(context, kind);
    for (unsigned i = 0; i < parameters; ++i) list = list.removeParamAttribute(context, i, kind);
  }
  return list;
}

template <class Visit>
void for_each_call(llvm::Module& module, Visit visit) {
  for (auto& function : module)
    for (auto& block : function)
      for (auto& instruction : block)
        if (auto* const call = llvm::dyn_cast<llvm::CallBase>(&instruction)) visit(*call);
}

void strip_attributes(llvm::Module& module, bool unwinds) {
  auto& context = module.getContext();
  for (auto& function : module) {
    if (function.isIntrinsic()) {  // LLVM's reader knows them by heart
      function.setAttributes({});
      continue;
    }
    auto list = without_strings(context, function.getAttributes());
    // What describe_abi() said has done its work.
    if (!function.isDeclaration() || is_ifunc_abi(function.getName().str()))
      list = without_inferred(context, list, function.arg_size());
    if (!unwinds) list = list.removeFnAttribute(context, llvm::Attribute::UWTable);
    function.setAttributes(list);
    // Where nothing is thrown, nothing is unwound: no tables for it.
    if (!unwinds && !function.isDeclaration()) function.addFnAttr(llvm::Attribute::NoUnwind);
  }
  for_each_call(module, [&](llvm::CallBase& call) {
    auto list = without_strings(context, call.getAttributes()).removeRetAttribute(context, llvm::Attribute::NoUndef);
    for (unsigned i = 0; i < call.arg_size(); ++i)
      list = list.removeParamAttribute(context, i, llvm::Attribute::NoUndef);
    call.setAttributes(list);
  });
}

bool has_loop(const llvm::Module& module) {
  for (const auto& function : module) {
    if (function.isDeclaration()) continue;
    llvm::SmallVector<std::pair<const llvm::BasicBlock*, const llvm::BasicBlock*>, 8> back_edges;
    llvm::FindFunctionBackedges(function, back_edges);
    if (!back_edges.empty()) return true;
  }
  return false;
}

// Loops are where knowing what does not alias, and what the author asked for, pays at the target; elsewhere it
// costs more bytes than it saves time.
void strip_metadata(llvm::Module& module) {
  const bool keep_for_loops = has_loop(module);
  const auto kept = [&](unsigned kind) {
    if (!keep_for_loops) return false;
    return kind == llvm::LLVMContext::MD_tbaa || kind == llvm::LLVMContext::MD_tbaa_struct ||
           kind == llvm::LLVMContext::MD_loop || kind == llvm::LLVMContext::MD_alias_scope ||
           kind == llvm::LLVMContext::MD_noalias || kind == llvm::LLVMContext::MD_access_group ||
           kind == llvm::LLVMContext::MD_prof;
  };
  llvm::SmallVector<std::pair<unsigned, llvm::MDNode*>, 8> found;
  for (auto& function : module) {
    function.clearMetadata();
    for (auto& block : function)
      for (auto& instruction : block) {
        found.clear();
        instruction.getAllMetadata(found);
        for (const auto& [kind, node] : found)
          if (!kept(kind)) instruction.setMetadata(kind, nullptr);
      }
  }
  for (auto& global : module.globals()) global.clearMetadata();
}

// Module flags tell a linker how to combine modules. A target links nothing to this one, but needs its ABI's name.
void strip_module_metadata(llvm::Module& module) {
  llvm::Metadata* abi = module.getModuleFlag("target-abi");
  const auto* const abi_name = llvm::dyn_cast_or_null<llvm::MDString>(abi);
  const std::string kept = abi_name ? abi_name->getString().str() : "";
  for (auto& node : llvm::make_early_inc_range(module.named_metadata())) module.eraseNamedMetadata(&node);
  if (!kept.empty())
    module.addModuleFlag(llvm::Module::Error, "target-abi", llvm::MDString::get(module.getContext(), kept));
}

void strip_names(llvm::Module& module) {
  for (auto& value : module.global_values())
    if (value.hasLocalLinkage()) value.setName("");
  for (auto& function : module) {
    for (auto& argument : function.args()) argument.setName("");
    for (auto& block : function) {
      block.setName("");
      for (auto& instruction : block) instruction.setName("");
    }
  }
  llvm::TypeFinder types;
  types.run(module, true);
  for (auto* const type : types) type->setName("");
  module.setSourceFileName("");
}

}  // namespace

void strip_cpu(llvm::Module& module) {
  auto& context = module.getContext();
  for (auto& function : module) function.setAttributes(without_strings(context, function.getAttributes()));
  for_each_call(module,
                [&](llvm::CallBase& call) { call.setAttributes(without_strings(context, call.getAttributes())); });
}

void strip_for_travel(llvm::Module& module, bool unwinds) {
  llvm::StripDebugInfo(module);
  strip_attributes(module, unwinds);
  strip_metadata(module);
  strip_module_metadata(module);
  strip_names(module);
}

}  // namespace tc::toolchain
