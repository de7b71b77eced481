// SPDX-License-Identifier: Apache-2.0
//
// The front ends: a compiler runs once for each triple and writes bitcode. clang compiles C and C++, up to bitcode that
// the target can still optimise for its own CPU ("pre-link": inlined and cleaned, not yet vectorised; vectorised code
// would never widen again). rustc compiles Rust, with the crate threechains-ifunc in line. Python (Numba) and Julia
// compile in processes of their own, where a package of ours writes bitcode, for the triple or for their own machine.
//
// C and C++ need headers of the target's C library, which this machine may lack. Ifuncs that include only
// <threechains/ifunc.h>, <stddef.h> and <stdint.h> need none, because those are clang's own.
//
// Thread: the program's only one.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "toolchain/diagnostics.h"
#include "wire/target_triple.h"

namespace tc::toolchain {

enum class Language : uint8_t { c, cxx, rust, python, julia, llvm };

// By the file's suffix. TC_ERR_INVALID names the suffixes that there are.
Result<Language> language_of(const std::filesystem::path& file);

struct FrontEnd {
  std::vector<std::string> flags;           // given by the author, after all of ours
  std::filesystem::path include_directory;  // where <threechains/ifunc.h> is
  std::string name;                         // of the ifunc
};

struct Compiled {
  Bytes bitcode;
  Bytes signature;  // what the callers of a function of Python's pass (docs/wire-format.md); empty: other languages
};

// Compiles `source` for `triple`. The compiler's own messages go to standard error as they are, those of C, C++ and Rust by
// way of `diagnostics`; the error that is returned only adds what the compiler cannot know (a remedy), and says that it failed.
Result<Compiled> compile(const std::filesystem::path& source, Language language, const std::string& triple,
                         const FrontEnd& front_end, Diagnostics& diagnostics);

struct CrossTarget {
  const char* triple;  // as people write it
  const char* folder;  // where Debian's cross packages put headers: /usr/FOLDER/include
  const char* debian;  // Debian's name of the architecture; null when there is no cross package
};

// The targets with headers that we know of. 64-bit, little-endian, Linux: what ifuncs can be.
const std::vector<CrossTarget>& cross_targets();

// The target that was probably meant by a word that is no triple, such as "arm64", "amd64" or "riscv64"; null: none.
const char* meant_target(std::string_view word) noexcept;

// Headers for a target on this machine.
struct CrossHeaders {
  bool host = false;                 // this machine's own kind: the compiler finds them by itself
  std::filesystem::path c;           // the C library's; empty when they are not here
  bool cxx = false;                  // the C++ library's are here
  std::string c_remedy, cxx_remedy;  // what to install, as half a sentence

  bool complete(bool for_cxx) const { return !c.empty() && (cxx || !for_cxx); }
};
CrossHeaders find_cross_headers(const TargetTriple& target);

// The command of `zig cc`, which brings libc headers for all its targets and so compiles C where headers are missing:
// from TC_ZIG, `zig` on the PATH, or Python's package ziglang. Empty when there is none.
std::vector<std::string> find_zig();
// As zig names it: no vendor.
std::string zig_triple(const TargetTriple& target);

// `ifunc build --target list`: a table of the targets and of their headers on this machine, ended by a line about what
// is refused.
std::string list_targets();

}  // namespace tc::toolchain
