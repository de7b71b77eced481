// SPDX-License-Identifier: Apache-2.0
//
// The compiler and the linker that the toolchain runs: clang and lld, as programs of their own. A self-contained build
// (TC_SELF_CONTAINED) has both inside (toolchain/built_in), so that it needs none on the machine; the program then runs itself,
// under the tool's name. TC_CLANG, TC_CLANGXX and TC_LLD name others.
//
// Threads: any.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace tc::toolchain {

// A program, and the arguments that come first.
struct Tool {
  std::vector<std::string> command;
  bool built_in = false;
};

// clang, as a compiler of C or of C++. TC_ERR_NOT_FOUND names what was tried and how to get it. TC_ERR_INVALID: the variable
// names what cannot be run.
Result<Tool> find_clang(bool cxx);

// lld, for ELF. TC_ERR_NOT_FOUND as above.
Result<Tool> find_lld();

// For main(): a self-contained program that was started as one of its tools (`ifunc-toolchain clang …`) runs it. The exit
// status; nothing when these are other arguments.
std::optional<int> run_built_in_tool(int argc, const char* const* argv);

}  // namespace tc::toolchain
