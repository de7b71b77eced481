// SPDX-License-Identifier: Apache-2.0
//
// Compiles the kernels for this machine when the benchmark runs, because the machine that built it may have been another one.
// Threads: any.
#pragma once

#include <memory>
#include <string>

#include "base/result.h"
#include "target/code_store.h"

namespace tc::bench {

struct NativeKernels {
  std::shared_ptr<void> library;  // keeps the code there
  target::EntryPoint entry = nullptr;
  std::string compiler;  // its first line of --version
};

// With TC_CLANG, clang-22 or clang, -O3 -march=native. TC_ERR_NOT_FOUND when there is none, TC_ERR_COMPILE.
Result<NativeKernels> compile_native_kernels();

}  // namespace tc::bench
