// SPDX-License-Identifier: Apache-2.0
#include <llvm/Analysis/CGSCCPassManager.h>
#include <llvm/Analysis/LoopAnalysisManager.h>
#include <llvm/IR/Module.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Transforms/IPO/GlobalDCE.h>
#include <llvm/Transforms/IPO/StripDeadPrototypes.h>

#include <algorithm>

#include "toolchain/importer.h"

namespace tc::toolchain {

namespace {

void drop(llvm::Module& module, const char* name) {
  if (auto* const list = module.getNamedGlobal(name)) list->eraseFromParent();
}

// Nothing but the entries can be reached from outside, so that all else may be inlined, changed and dropped.
void internalise(llvm::Module& module, const std::vector<std::string>& entries) {
  for (auto& value : module.global_values()) {
    if (value.isDeclaration() || value.getName().starts_with("llvm.")) continue;
    if (std::find(entries.begin(), entries.end(), value.getName()) != entries.end()) continue;
    if (auto* const object = llvm::dyn_cast<llvm::GlobalObject>(&value)) {
      object->setComdat(nullptr);
      object->setSection("");  // places that the author's own linker script gives a meaning
    }
    if (value.hasAvailableExternallyLinkage()) {  // a copy for inlining; the real one is in some library
      if (auto* const function = llvm::dyn_cast<llvm::Function>(&value)) function->deleteBody();
      continue;
    }
    value.setVisibility(llvm::GlobalValue::DefaultVisibility);
    value.setDLLStorageClass(llvm::GlobalValue::DefaultStorageClass);
    value.setLinkage(llvm::GlobalValue::InternalLinkage);
    value.setDSOLocal(true);
  }
}

// The same stage as the front end's -flto=thin: inline, propagate, clean; no vectorising, no unrolling.
void optimise(llvm::Module& module) {
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager components;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder builder;
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(components);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, components, modules);
  llvm::ModulePassManager passes;
  passes.addPass(llvm::GlobalDCEPass());
  passes.addPass(builder.buildThinLTOPreLinkDefaultPipeline(llvm::OptimizationLevel::O3));
  passes.addPass(llvm::GlobalDCEPass());
  passes.addPass(llvm::StripDeadPrototypesPass());
  passes.run(module, modules);
}

}  // namespace

void reduce_to(llvm::Module& module, const std::vector<std::string>& entries) {
  drop(module, "llvm.used");
  drop(module, "llvm.compiler.used");
  internalise(module, entries);
  optimise(module);
}

}  // namespace tc::toolchain
