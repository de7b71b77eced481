// SPDX-License-Identifier: Apache-2.0
#include "target/jit/optimizer.h"

#include <llvm/Analysis/TargetLibraryInfo.h>
#include <llvm/Passes/PassBuilder.h>

namespace tc::target::jit {

namespace {

// Optimisations turn one library call into another (printf into puts, pow into exp2). The bundle was checked for
// the symbols that it names, and only those resolve: so only functions that the module names itself may be called,
// besides the four that every compiler takes for granted.
llvm::TargetLibraryInfoImpl known_functions(const llvm::Module& module, const llvm::Triple& triple) {
  llvm::TargetLibraryInfoImpl library(triple);
  library.disableAllFunctions();
  for (const auto function : {llvm::LibFunc_memcpy, llvm::LibFunc_memmove, llvm::LibFunc_memset, llvm::LibFunc_memcmp})
    library.setAvailable(function);
  for (const auto& function : module) {
    llvm::LibFunc known;
    if (function.isDeclaration() && library.getLibFunc(function.getName(), known)) library.setAvailable(known);
  }
  return library;
}

}  // namespace

void optimize(llvm::Module& module, llvm::TargetMachine& machine) {
  llvm::PipelineTuningOptions tuning;
  tuning.LoopVectorization = true;
  tuning.SLPVectorization = true;
  tuning.LoopInterleaving = true;
  tuning.LoopUnrolling = true;
  llvm::PassBuilder builder(&machine, tuning);

  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager call_graph;
  llvm::ModuleAnalysisManager modules;
  functions.registerPass(
      [library = known_functions(module, machine.getTargetTriple())] { return llvm::TargetLibraryAnalysis(library); });
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(call_graph);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, call_graph, modules);

  // The second half of ThinLTO, without other modules to import from: it expects exactly the form that bundles
  // carry, and takes bitcode in any other form as well.
  builder.buildThinLTODefaultPipeline(llvm::OptimizationLevel::O3, nullptr).run(module, modules);
}

}  // namespace tc::target::jit
