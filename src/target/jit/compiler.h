// SPDX-License-Identifier: Apache-2.0
//
// Bitcode to a relocatable object, with one amount of effort. Everything that LLVM lets us keep between compilations
// is kept: context, target machine, pass manager.
//
// LLVM's fatal errors ("cannot select") end the process, whatever handler is installed: LLVM does not let a handler
// return. Bitcode that passes the toolchain's checks has not been seen to cause one.
//
// Threads: any; a call waits for the one before it.
#pragma once

#include <llvm/IR/LLVMContext.h>
#include <llvm/Target/TargetMachine.h>

#include <memory>
#include <mutex>
#include <string>

#include "target/jit/code_generator.h"
#include "target/jit/host.h"
#include "target/jit_plugin.h"

namespace tc::target::jit {

class Compiler {
 public:
  // `host` must outlive the compiler.
  Compiler(const Host& host, Effort effort) : host_(host), effort_(effort) {}

  // TC_ERR_COMPILE with LLVM's words; TC_ERR_UNSUPPORTED when LLVM has no code generator for this host.
  Result<Bytes> compile(ByteView bitcode, const std::string& label);

 private:
  Status prepare();
  Result<std::unique_ptr<llvm::Module>> parse(ByteView bitcode, const std::string& label);
  // What LLVM reported since it was last asked.
  Status reported();

  const Host& host_;
  const Effort effort_;
  std::mutex mutex_;
  std::string errors_;
  unsigned context_uses_ = 0;
  std::unique_ptr<llvm::LLVMContext> context_;
  std::unique_ptr<llvm::TargetMachine> machine_;
  std::unique_ptr<CodeGenerator> generator_;
};

}  // namespace tc::target::jit
