// SPDX-License-Identifier: Apache-2.0
//
// Finds and runs the programs that the toolchain is made of: clang, lld, rustc, python3. Threads: any.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/result.h"

namespace tc::toolchain {

// The first of `names` that can be run: `variable` of the environment when it is set, then each name along PATH.
// TC_ERR_NOT_FOUND names what was tried and how to get it. TC_ERR_INVALID: `variable` names what cannot be run.
Result<std::string> find_tool(const char* variable, const std::vector<std::string>& names, std::string_view remedy);

// Runs `arguments[0]` with the rest, on our own standard streams, and waits. Returns its exit status; a signal
// that ended it, or a program that cannot be started, is TC_ERR_IO.
Result<int> run(const std::vector<std::string>& arguments);

}  // namespace tc::toolchain
