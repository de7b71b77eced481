// SPDX-License-Identifier: Apache-2.0
#include "target/jit/warm_up.h"

#include <llvm/Bitcode/BitcodeWriter.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/MDBuilder.h>
#include <llvm/IR/Module.h>
#include <llvm/Support/raw_ostream.h>

#include <cstring>
#include <string>

namespace tc::target::jit {

namespace {

constexpr const char* entry_name = "tc_warm_up";
constexpr const char* callee_name = "tc_warm_up_callee";

uint64_t callee(uint64_t value) { return value + 1; }

// As C, and with what a compiler would add: module flags, type-based alias metadata, unwind tables.
//
//   static uint64_t calls[4];
//   uint64_t tc_warm_up(uint64_t x) {
//     uint64_t copy[4];
//     ++calls[0];
//     memcpy(copy, calls, sizeof copy);
//     return x == 0 ? 0 : tc_warm_up_callee(x) * 2;
//   }
class BuiltIn {
 public:
  BuiltIn() {
    module_.addModuleFlag(llvm::Module::Error, "wchar_size", 4);
    module_.setPICLevel(llvm::PICLevel::BigPIC);
    module_.setUwtable(llvm::UWTableKind::Async);
    auto* entry = llvm::Function::Create(type_, llvm::Function::ExternalLinkage, entry_name, module_);
    entry->setUWTableKind(llvm::UWTableKind::Async);
    entry->addFnAttr("no-trapping-math", "true");
    entry->addFnAttr("stack-protector-buffer-size", "8");
    fill(*entry);
  }

  std::string bitcode() const {
    std::string bytes;
    llvm::raw_string_ostream stream(bytes);
    llvm::WriteBitcodeToFile(module_, stream);
    return bytes;
  }

 private:
  void fill(llvm::Function& entry) {
    auto* array = llvm::ArrayType::get(number_, 4);
    auto* calls = new llvm::GlobalVariable(module_, array, false, llvm::GlobalValue::InternalLinkage,
                                           llvm::ConstantAggregateZero::get(array), "calls");
    auto* start = llvm::BasicBlock::Create(context_, "", &entry);
    auto* zero = llvm::BasicBlock::Create(context_, "", &entry);
    auto* other = llvm::BasicBlock::Create(context_, "", &entry);
    build_.SetInsertPoint(start);
    auto* copy = build_.CreateAlloca(array);
    auto* count = build_.CreateLoad(number_, calls);
    auto* store = build_.CreateStore(build_.CreateAdd(count, build_.getInt64(1)), calls);
    annotate(*count), annotate(*store);
    build_.CreateMemCpy(copy, llvm::MaybeAlign(8), calls, llvm::MaybeAlign(8), 4 * sizeof(uint64_t));
    build_.CreateCondBr(build_.CreateICmpEQ(entry.getArg(0), build_.getInt64(0)), zero, other);
    build_.SetInsertPoint(zero);
    build_.CreateRet(build_.getInt64(0));
    build_.SetInsertPoint(other);
    const auto external = module_.getOrInsertFunction(callee_name, type_);
    build_.CreateRet(build_.CreateMul(build_.CreateCall(external, {entry.getArg(0)}), build_.getInt64(2)));
  }

  void annotate(llvm::Instruction& access) {
    llvm::MDBuilder metadata(context_);
    auto* root = metadata.createTBAARoot("Simple C/C++ TBAA");
    auto* node = metadata.createTBAAScalarTypeNode("long", root);
    access.setMetadata(llvm::LLVMContext::MD_tbaa, metadata.createTBAAStructTagNode(node, node, 0));
  }

  llvm::LLVMContext context_;
  llvm::Module module_{"warm-up", context_};
  llvm::IRBuilder<> build_{context_};
  llvm::Type* number_ = build_.getInt64Ty();
  llvm::FunctionType* type_ = llvm::FunctionType::get(number_, {number_}, false);
};

Status run_once(Jit& jit, ByteView bitcode) {
  TC_ASSIGN(const auto object, jit.compile(bitcode, Effort::baseline, "warm-up"));
  const auto resolve = [](const std::string& name) -> Result<void*> {
    if (name == callee_name) return reinterpret_cast<void*>(&callee);
    if (name == "memcpy") return reinterpret_cast<void*>(&std::memcpy);
    return fail(TC_ERR_INTERNAL, "the built-in function wants {}, which it should not", name);
  };
  TC_ASSIGN(const auto code, jit.link(object, "warm-up", resolve, {}));
  const auto entry = reinterpret_cast<uint64_t (*)(uint64_t)>(code->symbol(entry_name));
  if (!entry) return fail(TC_ERR_INTERNAL, "the built-in function lost its name");
  if (const auto answer = entry(20); answer != 42)
    return fail(TC_ERR_INTERNAL, "the built-in function returned {} when 42 was expected", answer);
  return {};
}

}  // namespace

Status warm_up_with(Jit& jit) {
  const auto bitcode = BuiltIn().bitcode();
  // The second time still meets pages and tables for the first time.
  for (int i = 0; i < 3; ++i) TC_CHECK(run_once(jit, as_bytes(bitcode)));
  return {};
}

}  // namespace tc::target::jit
