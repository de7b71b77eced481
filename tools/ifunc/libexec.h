// SPDX-License-Identifier: Apache-2.0
//
// Where the programs lie that this one runs for people: ifunc-toolchain, report/, model/.
#pragma once

#include <filesystem>

namespace tc::command {

// TC_LIBEXEC, else libexec/threechains beside bin/: the same in a build tree and after installation.
std::filesystem::path libexec_path(const char* name);

}  // namespace tc::command
