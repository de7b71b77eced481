// SPDX-License-Identifier: Apache-2.0
//
// The folder of the programs that `ifunc` runs: ifunc-toolchain, report/, model/. Threads: any.
#pragma once

#include <filesystem>

namespace tc::command {

// TC_LIBEXEC, else libexec/threechains beside bin/: the same in a build tree and after installation.
std::filesystem::path libexec_path(const char* name);

}  // namespace tc::command
