// SPDX-License-Identifier: Apache-2.0
//
// Module to relocatable object (or to assembly, for people). The pass manager is built once and used for every module: building it costs 520 µs,
// five times what it then takes to compile a small function (docs/jit.md).
//
// Threads: one at a time.
#pragma once

#include <llvm/ADT/SmallVector.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/Support/CodeGen.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>

#include <memory>

#include "base/bytes.h"

namespace tc::target::jit {

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

}  // namespace tc::target::jit
