// SPDX-License-Identifier: Apache-2.0
//
// For which targets ifuncs can be built on this machine, and what headers there are for each. Ifuncs that include
// only <threechains/ifunc.h>, <stddef.h> and <stdint.h> need none: those are clang's own.
//
// Thread: the program's only one.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "wire/target_triple.h"

namespace tc::toolchain {

struct CrossTarget {
  const char* triple;  // as people write it
  const char* folder;  // where Debian's cross packages put headers: /usr/FOLDER/include
  const char* debian;  // Debian's name of the architecture; null when there is no cross package
};

// 64-bit, little-endian, Linux: what ifuncs can be.
const std::vector<CrossTarget>& cross_targets();

// The target that was probably meant by a word that is no triple, such as "arm64", "amd64" or "riscv64"; null: none.
const char* meant_target(std::string_view word) noexcept;

struct CrossHeaders {
  bool host = false;                 // this machine's own kind: the compiler finds them by itself
  std::filesystem::path c;           // the C library's; empty when they are not here
  bool cxx = false;                  // the C++ library's are here
  std::string c_remedy, cxx_remedy;  // what to install, as half a sentence

  bool complete(bool for_cxx) const { return !c.empty() && (cxx || !for_cxx); }
};
CrossHeaders find_cross_headers(const TargetTriple& target);

// Which front end compiles C for it when headers are missing: `zig cc` brings libc headers for all its targets. Its
// command, from TC_ZIG, `zig` on the PATH, or Python's package ziglang; empty when there is none.
std::vector<std::string> find_zig();
// As zig names it: no vendor.
std::string zig_triple(const TargetTriple& target);

// `ifunc build --target list`: a table, ended by a line about what is refused.
std::string list_targets();

}  // namespace tc::toolchain
