// SPDX-License-Identifier: Apache-2.0
//
// Bitcode to a relocatable object, with one amount of effort. Everything that LLVM lets us keep between compilations
// is kept: context, target machine, pass manager.
//
// When LLVM gives up with a fatal error (llvm_errors.h), everything kept is abandoned without being freed, and that
// bitcode is refused unseen from then on.
//
// Threads: any; a call waits for the one before it.
#pragma once

#include <llvm/ADT/SmallVector.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/Support/CodeGen.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "base/content_id.h"
#include "target/jit/host.h"
#include "target/jit_plugin.h"

namespace tc::target::jit {

// Module to relocatable object (or to assembly, for people). The pass manager is built once and used for every module:
// building it costs 520 µs, five times what it then takes to compile a small function (docs/jit.md).
//
// Threads: one at a time.
class CodeGenerator {
 public:
  // `machine` must outlive the generator. TC_ERR_UNSUPPORTED when it cannot write that.
  static Result<std::unique_ptr<CodeGenerator>> create(llvm::TargetMachine& machine, llvm::CodeGenFileType output);

  // Errors go to the diagnostics handler of the module's context. After one the generator is in an unknown state:
  // make a new one.
  Bytes run(llvm::Module& module);

 private:
  CodeGenerator() = default;

  llvm::SmallVector<char, 0> object_;
  llvm::raw_svector_ostream stream_{object_};
  llvm::legacy::PassManager passes_;
};

class Compiler {
 public:
  // `host` must outlive the compiler. `output`: objects are what runs; assembly, made in the same way, is for people.
  Compiler(const Host& host, Effort effort, llvm::CodeGenFileType output = llvm::CodeGenFileType::ObjectFile);

  // TC_ERR_COMPILE with LLVM's words, or for assembly that is refused; TC_ERR_UNSUPPORTED when LLVM has no code generator for
  // this host.
  Result<Bytes> compile(ByteView bitcode, Assembly assembly, const std::string& label);
  // See Jit::given_up.
  uint64_t given_up() const noexcept { return given_up_.load(std::memory_order_relaxed); }
  // See Jit::may_exchange.
  Result<bool> may_exchange(ByteView bitcode, const std::string& label);

 private:
  // Does `work` with this bitcode, and remembers it when LLVM gives up.
  template <class Value>
  Result<Value> guarded(ByteView bitcode, llvm::function_ref<Result<Value>()> work);
  Result<Bytes> compile_unguarded(ByteView bitcode, Assembly assembly, const std::string& label);
  std::unexpected<Error> abandon(ByteView bitcode, const std::string& reason);
  Status prepare();
  Result<std::unique_ptr<llvm::Module>> parse(ByteView bitcode, const std::string& label);
  // What LLVM reported since it was last asked.
  Status reported();

  const Host& host_;
  const Effort effort_;
  const llvm::CodeGenFileType output_;
  std::mutex mutex_;
  std::string errors_;
  unsigned context_uses_ = 0;
  std::unique_ptr<llvm::LLVMContext> context_;
  std::unique_ptr<llvm::TargetMachine> machine_;
  std::unique_ptr<CodeGenerator> generator_;
  std::map<ContentId, Error> fatal_;  // bitcode that made LLVM give up
  std::atomic<uint64_t> given_up_{0};
};

}  // namespace tc::target::jit
