// SPDX-License-Identifier: Apache-2.0
//
// Finds and runs the programs that the toolchain is made of: clang and lld, rustc, python3, julia. A self-contained build
// (TC_SELF_CONTAINED) has clang and lld inside (toolchain/built_in), so that it needs none on the machine; the program then
// runs itself, under the tool's name. TC_CLANG, TC_CLANGXX and TC_LLD name others.
//
// Threads: any.
#pragma once

#include <optional>
#include <string>
#include <string_view>
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

// Any other tool: the first of `names` that can be run. That is `variable` of the environment when it is set, else
// each name along PATH. Errors as find_clang().
Result<std::string> find_tool(const char* variable, const std::vector<std::string>& names, std::string_view remedy);

// Runs `arguments[0]` with the rest, on our own standard streams, and waits. Returns its exit status; a signal
// that ended it, or a program that cannot be started, is TC_ERR_IO.
Result<int> run(const std::vector<std::string>& arguments);

// For main(): a self-contained program that was started as one of its tools (`ifunc-toolchain clang …`) runs it. The exit
// status; nothing when these are other arguments.
std::optional<int> run_built_in_tool(int argc, const char* const* argv);

}  // namespace tc::toolchain
