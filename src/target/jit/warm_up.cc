// SPDX-License-Identifier: Apache-2.0
#include "target/jit/warm_up.h"

#include <llvm/Bitcode/BitcodeWriter.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <llvm/Support/raw_ostream.h>

#include <string>

namespace tc::target::jit {

namespace {

constexpr const char* entry_name = "tc_warm_up";
constexpr const char* callee_name = "tc_warm_up_callee";

uint64_t callee(uint64_t value) { return value + 1; }

// uint64_t tc_warm_up(uint64_t x) { return x == 0 ? 0 : tc_warm_up_callee(x) * 2; } with a global counter: a branch,
// an external call and data, as an ifunc has.
std::string built_in_bitcode() {
  llvm::LLVMContext context;
  llvm::Module module("warm-up", context);
  llvm::IRBuilder<> build(context);
  auto* number = build.getInt64Ty();
  auto* type = llvm::FunctionType::get(number, {number}, false);
  auto* entry = llvm::Function::Create(type, llvm::Function::ExternalLinkage, entry_name, module);
  const auto external = module.getOrInsertFunction(callee_name, type);
  auto* calls = new llvm::GlobalVariable(module, number, false, llvm::GlobalValue::InternalLinkage,
                                         build.getInt64(0), "calls");
  auto* start = llvm::BasicBlock::Create(context, "", entry);
  auto* zero = llvm::BasicBlock::Create(context, "", entry);
  auto* other = llvm::BasicBlock::Create(context, "", entry);
  build.SetInsertPoint(start);
  build.CreateStore(build.CreateAdd(build.CreateLoad(number, calls), build.getInt64(1)), calls);
  build.CreateCondBr(build.CreateICmpEQ(entry->getArg(0), build.getInt64(0)), zero, other);
  build.SetInsertPoint(zero);
  build.CreateRet(build.getInt64(0));
  build.SetInsertPoint(other);
  build.CreateRet(build.CreateMul(build.CreateCall(external, {entry->getArg(0)}), build.getInt64(2)));
  std::string bitcode;
  llvm::raw_string_ostream stream(bitcode);
  llvm::WriteBitcodeToFile(module, stream);
  return bitcode;
}

}  // namespace

Status warm_up_with(Jit& jit) {
  const auto bitcode = built_in_bitcode();
  TC_ASSIGN(const auto object, jit.compile(as_bytes(bitcode), Effort::quick, "warm-up"));
  const auto resolve = [](const std::string& name) -> Result<void*> {
    if (name == callee_name) return reinterpret_cast<void*>(&callee);
    return fail(TC_ERR_INTERNAL, "the built-in function wants {}, which it should not", name);
  };
  TC_ASSIGN(const auto code, jit.link(object, "warm-up", resolve));
  const auto entry = reinterpret_cast<uint64_t (*)(uint64_t)>(code->symbol(entry_name));
  if (!entry) return fail(TC_ERR_INTERNAL, "the built-in function lost its name");
  if (const auto answer = entry(20); answer != 42)
    return fail(TC_ERR_INTERNAL, "the built-in function returned {} when 42 was expected", answer);
  return {};
}

}  // namespace tc::target::jit
