// SPDX-License-Identifier: Apache-2.0
//
// What this process runs on, in LLVM's words. Found out once, when the plug-in is loaded; the same for every
// thread afterwards.
#pragma once

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

  // Looks at the CPU and makes LLVM's code generator for it ready. TC_ERR_UNSUPPORTED when LLVM has none.
  static Result<Host> detect();

  // A machine that generates position-independent code for exactly this CPU. Belongs to one thread at a time.
  Result<std::unique_ptr<llvm::TargetMachine>> machine(Effort effort) const;
};

}  // namespace tc::target::jit
