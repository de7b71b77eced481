// SPDX-License-Identifier: Apache-2.0
//
// Builds ifuncs from sources given as text, in a directory of the test's own.
#pragma once

#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>

#include <memory>
#include <string>

#include "base/file.h"
#include "toolchain/build.h"
#include "toolchain/tools.h"

namespace tc::toolchain {

inline constexpr const char* x86_64 = "x86_64-linux-gnu";
inline constexpr const char* aarch64 = "aarch64-linux-gnu";

class Workshop {
 public:
  Workshop();

  // Writes a file; `request.inputs` becomes it if it is the first one with a source's suffix.
  Workshop& file(const std::string& name, const std::string& text);
  Result<BuildResult> build() const { return tc::toolchain::build(request); }
  // The bundle, or a test failure and an empty one.
  Bundle bundle() const;
  // The message with which the build is refused; a test failure when it is not.
  std::string refusal() const;
  const std::filesystem::path& path() const { return directory_.path(); }

  BuildRequest request;

 private:
  TemporaryDirectory directory_;
};

// A C file `name`.c with the headers, built for x86-64 alone.
Workshop c_file(const std::string& name, const std::string& text);

// The slice's index; a test failure when the bundle has none.
size_t slice_of(const Bundle& bundle, SliceRole role, SliceForm form, const char* triple = x86_64);

// The slice's bitcode as LLVM reads it.
struct ReadModule {
  std::unique_ptr<llvm::LLVMContext> context = std::make_unique<llvm::LLVMContext>();
  std::unique_ptr<llvm::Module> module;
  std::string text() const;
};
ReadModule read_module(const Bundle& bundle, SliceRole role, const char* triple = x86_64);

}  // namespace tc::toolchain
