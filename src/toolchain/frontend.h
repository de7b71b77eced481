// SPDX-License-Identifier: Apache-2.0
//
// The front ends: each compiler runs once for each triple. For C and C++ that is clang, up to bitcode that the target can still optimise for
// its own CPU ("pre-link": inlined and cleaned, not yet vectorised; vectorised code would never widen again).
//
// Thread: the program's only one.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/bytes.h"

namespace tc::toolchain {

enum class Language : uint8_t { c, cxx, rust, python, julia, llvm };

// By the file's suffix. TC_ERR_INVALID names the suffixes that there are.
Result<Language> language_of(const std::filesystem::path& file);

struct FrontEnd {
  std::vector<std::string> flags;           // given by the author, after all of ours
  std::filesystem::path include_directory;  // where <threechains/ifunc.h> is
  std::string name;                         // of the ifunc
};

// Compiles `source` for `triple`. The compiler's own messages go to standard error as they are; the error that is
// returned only adds what the compiler cannot know (a remedy), and says that it failed.
Result<Bytes> compile(const std::filesystem::path& source, Language language, const std::string& triple,
                      const FrontEnd& front_end);

// frontend_rust.cc, frontend_delegates.cc: the same for one language each; compile() calls them.
Result<Bytes> compile_rust(const std::filesystem::path& source, const std::string& triple, const FrontEnd& front_end);
Result<Bytes> compile_python(const std::filesystem::path& source, const std::string& triple, const FrontEnd& front_end);
Result<Bytes> compile_julia(const std::filesystem::path& source, const std::string& triple, const FrontEnd& front_end);

}  // namespace tc::toolchain
