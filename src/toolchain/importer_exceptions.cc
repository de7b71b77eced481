// SPDX-License-Identifier: Apache-2.0
//
// A C++ exception that leaves the entry has no handler above it: the node, and with it all it serves, would end in
// std::terminate(). So the entry that travels is a shell which catches everything and calls tc_fail().
#include <llvm/BinaryFormat/Dwarf.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/DebugInfoMetadata.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/Module.h>

#include <algorithm>

#include "threechains/ifunc.h"
#include "toolchain/importer.h"
#include "toolchain/resolve.h"

namespace tc::toolchain {

namespace {

bool is_cxx(const llvm::Module& module) {
  for (const auto* const unit : module.debug_compile_units())
    if (llvm::dwarf::isCPlusPlus(
            static_cast<llvm::dwarf::SourceLanguage>(unit->getSourceLanguage().getUnversionedName())))
      return true;
  return false;
}

// A call of something outside, of which nobody promised that it does not throw, by C++ that was compiled for exceptions.
// Bitcode without positions does not name its language, but what is C++ outside has a name of C++.
bool may_throw(const llvm::CallBase& call, bool is_cxx) {
  if (call.doesNotThrow() || call.getFunction()->doesNotThrow() || call.isInlineAsm()) return false;
  const auto* const callee = call.getCalledFunction();
  if (callee == nullptr) return is_cxx;
  if (!callee->isDeclaration() || callee->isIntrinsic() || is_ifunc_abi(callee->getName().str())) return false;
  return is_cxx || callee->getName().starts_with("_Z");
}

bool calls_what_may_throw(const llvm::Module& module) {
  const bool cxx = is_cxx(module);
  for (const auto& function : module)
    for (const auto& block : function)
      for (const auto& instruction : block)
        if (const auto* const call = llvm::dyn_cast<llvm::CallBase>(&instruction); call && may_throw(*call, cxx))
          return true;
  return false;
}

}  // namespace

bool unwinds(const llvm::Module& module) {
  for (const char* name : {"__cxa_throw", "__cxa_rethrow", "_Unwind_Resume"})
    if (const auto* const function = module.getFunction(name); function && !function->use_empty()) return true;
  if (std::any_of(module.begin(), module.end(), [](const auto& f) { return f.hasPersonalityFn(); })) return true;
  return calls_what_may_throw(module);
}

void catch_all_in(llvm::Module& module, const std::string& name) {
  auto* const inner = module.getFunction(name);
  if (!inner || inner->isDeclaration() || inner->doesNotThrow() || !unwinds(module)) return;
  auto& context = module.getContext();
  inner->setName(name + ".inner");
  auto* const outer =
      llvm::Function::Create(inner->getFunctionType(), llvm::GlobalValue::ExternalLinkage, name, module);
  inner->replaceUsesWithIf(outer, [](auto&) { return true; });
  inner->setLinkage(llvm::GlobalValue::InternalLinkage);
  inner->setDSOLocal(true);

  llvm::IRBuilder<> builder(context);
  auto* const pointer = builder.getPtrTy();
  auto personality =
      module.getOrInsertFunction("__gxx_personality_v0", llvm::FunctionType::get(builder.getInt32Ty(), true));
  outer->setPersonalityFn(llvm::cast<llvm::Constant>(personality.getCallee()));
  auto* const start = llvm::BasicBlock::Create(context, "", outer);
  auto* const done = llvm::BasicBlock::Create(context, "", outer);
  auto* const caught = llvm::BasicBlock::Create(context, "", outer);

  builder.SetInsertPoint(start);
  std::vector<llvm::Value*> arguments;
  for (auto& argument : outer->args()) arguments.push_back(&argument);
  builder.CreateInvoke(inner, done, caught, arguments);
  builder.SetInsertPoint(done);
  builder.CreateRetVoid();

  builder.SetInsertPoint(caught);
  auto* const pad = builder.CreateLandingPad(llvm::StructType::get(pointer, builder.getInt32Ty()), 1);
  pad->addClause(llvm::ConstantPointerNull::get(pointer));
  builder.CreateCall(module.getOrInsertFunction("__cxa_begin_catch", pointer, pointer),
                     {builder.CreateExtractValue(pad, 0)});
  builder.CreateCall(module.getOrInsertFunction("tc_fail", builder.getVoidTy(), builder.getInt32Ty(), pointer),
                     {builder.getInt32(static_cast<uint32_t>(TC_FAIL_EXCEPTION)),
                      builder.CreateGlobalString("an exception was thrown and not caught", "tc.failure")});
  builder.CreateCall(module.getOrInsertFunction("__cxa_end_catch", builder.getVoidTy()));
  builder.CreateRetVoid();
}

}  // namespace tc::toolchain
