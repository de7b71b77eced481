// SPDX-License-Identifier: Apache-2.0
//
// The Jit that the plug-in exports, put together from its parts, and the one symbol that it exports (jit_factory_name). The
// library must stay loaded once it was opened: LLVM registers itself in places that do not forget.
//
// TC_DEBUG_JIT=1 makes linked code known to debuggers, TC_PERF_JIT=1 names it for perf.
//
// Thread: as jit_plugin.h says.
#include <llvm/Bitcode/BitcodeWriter.h>
#include <llvm/Config/llvm-config.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/MDBuilder.h>
#include <llvm/IR/Module.h>
#include <llvm/Support/raw_ostream.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>

#include "target/jit/compiler.h"
#include "target/jit/host.h"
#include "target/jit/linker.h"

namespace tc::target::jit {

namespace {

// ---- Warming up: runs a Jit once, so that what LLVM sets up on first use (3.7 to 6.5 ms) is not paid by the first ifunc

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
  TC_ASSIGN(const auto object, jit.compile(bitcode, Effort::baseline, Assembly::refused, "warm-up"));
  const auto resolve = [](const std::string& name) -> Result<void*> {
    if (name == callee_name) return reinterpret_cast<void*>(&callee);
    if (name == "memcpy") return reinterpret_cast<void*>(&std::memcpy);
    return fail(TC_ERR_INTERNAL, "the built-in function wants {}, which it should not", name);
  };
  TC_ASSIGN(const auto code, jit.link(object, "warm-up", resolve, {}, nullptr));
  const auto entry = reinterpret_cast<uint64_t (*)(uint64_t)>(code->symbol(entry_name));
  if (!entry) return fail(TC_ERR_INTERNAL, "the built-in function lost its name");
  if (const auto answer = entry(20); answer != 42)
    return fail(TC_ERR_INTERNAL, "the built-in function returned {} when 42 was expected", answer);
  return {};
}

// Compiles, links and calls a built-in function. TC_ERR_INTERNAL when it gives a wrong answer.
Status warm_up_with(Jit& jit) {
  const auto bitcode = BuiltIn().bitcode();
  // The second time still meets pages and tables for the first time.
  for (int i = 0; i < 3; ++i) TC_CHECK(run_once(jit, as_bytes(bitcode)));
  return {};
}

// ---- The plug-in

// Raise it when the same bitcode would give another object with the same LLVM: it makes cached objects miss.
constexpr int recipe = 1;

class LlvmJit final : public Jit {
 public:
  LlvmJit(Host host, LinkerOptions options, std::shared_ptr<CodeArena> memory)
      : host_(std::move(host)),
        baseline_(host_, Effort::baseline),
        tuned_(host_, Effort::tuned),
        linker_(options, std::move(memory)) {}

  Result<Bytes> compile(ByteView bitcode, Effort effort, Assembly assembly, const std::string& label) override {
    return (effort == Effort::baseline ? baseline_ : tuned_).compile(bitcode, assembly, label);
  }

  uint64_t given_up(Effort effort) const noexcept override {
    return (effort == Effort::baseline ? baseline_ : tuned_).given_up();
  }

  // Tuned code is what takes the place of other code.
  Result<bool> may_exchange(ByteView bitcode, const std::string& label) override {
    return tuned_.may_exchange(bitcode, label);
  }

  Result<std::unique_ptr<LinkedCode>> link(ByteView object, const std::string& label, const SymbolResolver& resolve,
                                           const Variables& variables, memory::Arena* exported) override {
    return linker_.link(object, label, resolve, variables, exported);
  }

  std::string fingerprint(Effort effort) const override {
    return fmt::format("recipe {} llvm {} {} cpu {} vectors {} effort {} features {}", recipe, LLVM_VERSION_STRING,
                       host_.triple, host_.cpu, host_.vector_width, effort == Effort::baseline ? "baseline" : "tuned",
                       host_.features);
  }

  Status warm_up() override { return warm_up_with(*this); }

 private:
  const Host host_;
  Compiler baseline_;
  Compiler tuned_;
  Linker linker_;
};

// The factory's caller gets no message: this one brings it.
class UnusableJit final : public Jit {
 public:
  explicit UnusableJit(Error reason) : reason_(std::move(reason)) {}

  Result<Bytes> compile(ByteView, Effort, Assembly, const std::string&) override { return fail(reason_); }
  uint64_t given_up(Effort) const noexcept override { return 0; }
  Result<bool> may_exchange(ByteView, const std::string&) override { return fail(reason_); }
  Result<std::unique_ptr<LinkedCode>> link(ByteView, const std::string&, const SymbolResolver&, const Variables&,
                                           memory::Arena*) override {
    return fail(reason_);
  }
  std::string fingerprint(Effort) const override { return "unusable"; }
  Status warm_up() override { return fail(reason_); }

 private:
  const Error reason_;
};

Result<std::unique_ptr<Jit>> try_to_make_jit(LinkerOptions options) {
  TC_ASSIGN(auto host, Host::detect());
  TC_ASSIGN(auto memory, CodeArena::create());
  return std::make_unique<LlvmJit>(std::move(host), options, std::move(memory));
}

// When LLVM cannot generate code for this host, or there is no memory for code, a Jit that says so whenever it is
// asked for anything.
std::unique_ptr<Jit> make_jit(LinkerOptions options) {
  auto jit = try_to_make_jit(options);
  if (jit) return std::move(*jit);
  return std::make_unique<UnusableJit>(std::move(jit).error());
}

bool asked_for(const char* variable) {
  const char* value = ::secure_getenv(variable);
  return value && std::string_view(value) == "1";
}

}  // namespace
}  // namespace tc::target::jit

extern "C" __attribute__((visibility("default"))) tc::target::Jit* threechains_make_jit(uint32_t version) {
  if (version != tc::target::jit_plugin_version) return nullptr;
  const tc::target::jit::LinkerOptions options{.debugger = tc::target::jit::asked_for("TC_DEBUG_JIT"),
                                               .perf = tc::target::jit::asked_for("TC_PERF_JIT")};
  return tc::target::jit::make_jit(options).release();
}
