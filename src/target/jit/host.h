// SPDX-License-Identifier: Apache-2.0
//
// A CPU to compile for, in LLVM's words: the one this process runs on, found out once, when the plug-in is loaded;
// or one that the caller named, to see what it would run. Never changes afterwards: any thread may read it.
#pragma once

#include <llvm/MC/TargetRegistry.h>
#include <llvm/Target/TargetMachine.h>

#include <memory>
#include <string>

#include "base/result.h"
#include "target/jit_plugin.h"

namespace tc::target::jit {

struct Host {
  std::string triple;
  std::string cpu;           // "sapphirerapids"
  std::string features;      // "+avx,-avx10.1,…", sorted: two runs give the same text
  std::string vector_width;  // for `prefer-vector-width`; empty where LLVM's own choice is the best
  std::shared_ptr<const llvm::Target> generator;  // without_files(); outlives all that is made of it

  // Looks at the CPU and makes LLVM's code generator for it ready. TC_ERR_UNSUPPORTED when LLVM has none.
  static Result<Host> detect();
  // The CPU that LLVM knows by this name (none: the plainest), with all that it has; `features` ("+v,+zba") come on top. The caller has
  // made LLVM's code generator for `triple` ready. TC_ERR_UNSUPPORTED when there is none, TC_ERR_INVALID when LLVM
  // knows no such CPU.
  static Result<Host> named(const std::string& triple, const std::string& cpu, const std::string& features);

  // A machine that generates position-independent code for exactly this CPU. Belongs to one thread at a time, and must not
  // outlive this host.
  Result<std::unique_ptr<llvm::TargetMachine>> machine(Effort effort) const;
  // Makes a parsed module fit this CPU: gives it the triple and data layout of `machine`, and its functions the CPU. Refuses
  // what the linker could not load (thread-locals, static constructors) and what was made for another architecture.
  // TC_ERR_COMPILE names both values.
  Status fit(llvm::Module& module, const llvm::TargetMachine& machine) const;
};

}  // namespace tc::target::jit
