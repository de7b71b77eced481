// SPDX-License-Identifier: Apache-2.0
//
// What the optimiser may know about functions that the importer knows and the front ends do not.
#include <llvm/IR/Attributes.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/Module.h>
#include <llvm/Support/ModRef.h>

#include "toolchain/importer.h"
#include "toolchain/resolve.h"
#include "wire/abi_names.h"

namespace tc::toolchain {

namespace {

constexpr llvm::StringRef algebraic = abi_names::algebraic_prefix;

// tc_algebraic_add_f64 and the like: what IEEE says, but in any order and fused.
llvm::Value* as_operation(llvm::IRBuilder<>& builder, llvm::StringRef name, llvm::CallInst& call) {
  if (call.arg_size() != 2 || !call.getType()->isFloatingPointTy()) return nullptr;
  auto* const left = call.getArgOperand(0);
  auto* const right = call.getArgOperand(1);
  if (left->getType() != call.getType() || right->getType() != call.getType()) return nullptr;
  if (name.starts_with("add_")) return builder.CreateFAdd(left, right);
  if (name.starts_with("sub_")) return builder.CreateFSub(left, right);
  if (name.starts_with("mul_")) return builder.CreateFMul(left, right);
  if (name.starts_with("div_")) return builder.CreateFDiv(left, right);
  return nullptr;
}

void lower_algebraic(llvm::Function& function) {
  const auto name = function.getName().substr(algebraic.size());
  for (auto* const user : llvm::make_early_inc_range(function.users())) {
    auto* const call = llvm::dyn_cast<llvm::CallInst>(user);
    if (!call || call->getCalledOperand() != &function) continue;
    llvm::IRBuilder<> builder(call);
    llvm::FastMathFlags loose;
    loose.setAllowReassoc();
    loose.setAllowContract(true);
    loose.setAllowReciprocal();
    loose.setNoSignedZeros();
    builder.setFastMathFlags(loose);
    if (auto* const operation = as_operation(builder, name, *call)) {
      call->replaceAllUsesWith(operation);
      call->eraseFromParent();
    }
  }
}

// Reads what it is given, and keeps no pointer to it.
void only_reads(llvm::Function& function, unsigned argument) {
  function.addParamAttr(argument, llvm::Attribute::ReadOnly);
  function.addParamAttr(argument,
                        llvm::Attribute::getWithCaptureInfo(function.getContext(), llvm::CaptureInfo::none()));
}

}  // namespace

void describe_abi(llvm::Module& module) {
  for (auto& function : module) {
    if (!function.isDeclaration()) continue;
    const auto name = function.getName();
    if (name.starts_with(algebraic)) lower_algebraic(function);
    if (!name.starts_with("tc_") || !is_ifunc_abi(name.str())) continue;
    // All of the ABI copies what it gets. Without this a variable that is replied is in memory all the time, for
    // whatever tc_data() gives could be that variable, and loops over the data exist twice.
    for (unsigned i = 0; i < function.arg_size(); ++i)
      if (function.getArg(i)->getType()->isPointerTy() && !(name == "tc_data" && i == 1)) only_reads(function, i);
    if (name == "tc_data" && function.arg_size() == 2 && function.getArg(1)->getType()->isPointerTy())
      function.addParamAttr(1, llvm::Attribute::getWithCaptureInfo(module.getContext(), llvm::CaptureInfo::none()));
  }
}

}  // namespace tc::toolchain
