// SPDX-License-Identifier: Apache-2.0
//
// Static constructors, when the author asks for them (--allow-ctors). No loader runs them, so that the entry points
// do: the first call of each copy of the code constructs. Destructors never run; code is freed without a word.
#include <llvm/IR/Constants.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/Module.h>

#include <map>

#include "toolchain/importer.h"

namespace tc::toolchain {

namespace {

// By priority, and in order of appearance where that is equal.
using Constructors = std::multimap<uint64_t, llvm::Function*>;

Constructors constructors_of(const llvm::GlobalVariable& list) {
  Constructors found;
  const auto* const array = llvm::dyn_cast<llvm::ConstantArray>(list.getInitializer());
  if (!array) return found;
  for (const auto& operand : array->operands()) {
    const auto* const entry = llvm::dyn_cast<llvm::ConstantStruct>(operand.get());
    if (!entry) continue;
    const auto* const priority = llvm::dyn_cast<llvm::ConstantInt>(entry->getOperand(0));
    auto* const function = llvm::dyn_cast<llvm::Function>(entry->getOperand(1)->stripPointerCasts());
    if (priority && function) found.emplace(priority->getZExtValue(), function);
  }
  return found;
}

// void construct_once() { if (!done) { done = true; first(); second(); ... } }
llvm::Function* construct_once(llvm::Module& module, const Constructors& constructors) {
  auto& context = module.getContext();
  auto* const byte = llvm::Type::getInt8Ty(context);
  auto* const done = new llvm::GlobalVariable(module, byte, false, llvm::GlobalValue::InternalLinkage,
                                              llvm::ConstantInt::get(byte, 0), "tc.constructed");
  auto* const type = llvm::FunctionType::get(llvm::Type::getVoidTy(context), false);
  auto* const once = llvm::Function::Create(type, llvm::GlobalValue::InternalLinkage, "tc.construct_once", module);
  auto* const look = llvm::BasicBlock::Create(context, "", once);
  auto* const construct = llvm::BasicBlock::Create(context, "", once);
  auto* const leave = llvm::BasicBlock::Create(context, "", once);
  llvm::IRBuilder<> builder(look);
  builder.CreateCondBr(builder.CreateIsNull(builder.CreateLoad(byte, done)), construct, leave);
  builder.SetInsertPoint(construct);
  builder.CreateStore(llvm::ConstantInt::get(byte, 1), done);
  for (const auto& [priority, function] : constructors) builder.CreateCall(function);
  builder.CreateBr(leave);
  builder.SetInsertPoint(leave);
  builder.CreateRetVoid();
  return once;
}

// What the front end found out about a function that did not construct yet.
void forget_effects(llvm::Function& function) {
  for (const auto kind : {llvm::Attribute::Memory, llvm::Attribute::NoFree, llvm::Attribute::NoRecurse,
                          llvm::Attribute::NoSync, llvm::Attribute::WillReturn, llvm::Attribute::NoCallback})
    function.removeFnAttr(kind);
}

void forget_destructors(llvm::Module& module) {
  if (auto* const list = module.getNamedGlobal("llvm.global_dtors")) list->eraseFromParent();
  auto* const at_exit = module.getFunction("__cxa_atexit");
  if (!at_exit || !at_exit->isDeclaration()) return;
  for (auto* const user : llvm::make_early_inc_range(at_exit->users()))
    if (auto* const call = llvm::dyn_cast<llvm::CallInst>(user); call && call->getCalledOperand() == at_exit) {
      call->replaceAllUsesWith(llvm::Constant::getNullValue(call->getType()));
      call->eraseFromParent();
    }
}

}  // namespace

void construct_on_first_call(llvm::Module& module, const std::vector<std::string>& entries) {
  forget_destructors(module);
  auto* const list = module.getNamedGlobal("llvm.global_ctors");
  if (!list || !list->hasInitializer()) return;
  const auto constructors = constructors_of(*list);
  list->eraseFromParent();
  if (constructors.empty()) return;
  auto* const once = construct_once(module, constructors);
  for (const auto& name : entries) {
    auto* const entry = module.getFunction(name);
    if (!entry || entry->isDeclaration()) continue;
    forget_effects(*entry);
    llvm::IRBuilder<>(&*entry->getEntryBlock().getFirstInsertionPt()).CreateCall(once);
  }
}

}  // namespace tc::toolchain
