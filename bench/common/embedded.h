// SPDX-License-Identifier: Apache-2.0
//
// The code and sources that this program carries inside it, and what lies beside it. Threads: any.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"

// TC_EMBED(name, "path"): the bytes of a file, carried inside the program, as `ByteView name()`.
#define TC_EMBED(name, path)                                                                                           \
  asm(".section .rodata\n.balign 16\n.globl tc_embedded_" #name "\n.hidden tc_embedded_" #name                         \
      "\n.globl tc_embedded_" #name "_end\n.hidden tc_embedded_" #name "_end\ntc_embedded_" #name ":\n.incbin \"" path \
      "\"\ntc_embedded_" #name "_end:\n.byte 0\n.text\n");                                                             \
  extern "C" const std::byte tc_embedded_##name[];                                                                     \
  extern "C" const std::byte tc_embedded_##name##_end[];                                                               \
  static ::tc::ByteView name() { return {tc_embedded_##name, tc_embedded_##name##_end}; }

namespace tc::bench {

// What lies beside this program, in libexec/threechains: ifunc-toolchain, report/, model/.
inline std::filesystem::path sibling(const char* name) {
  std::error_code error;  // then the path does not exist, and whoever opens it says so
  return std::filesystem::read_symlink("/proc/self/exe", error).parent_path() / name;
}

struct SourceFile {
  std::string name;
  ByteView text;
};

// Builds an ifunc when a benchmark starts, with `ifunc build`: the machine that builds this program need not have that
// language's compiler. The bundle is that of ifunc `name` for this machine's kind of processor, out of the first file;
// the others are headers. TC_ERR_COMPILE: the compiler is missing or refused; it said why on standard error.
Result<Bytes> build_ifunc(const std::string& name, const std::vector<SourceFile>& files);

// examples/05-pointer-chase/chaser.c, or its translation: "c", "julia" or "rust". TC_ERR_COMPILE when the language's
// compiler is not on this machine; the servers need none.
Result<Bytes> build_chaser(const std::string& language);

}  // namespace tc::bench
