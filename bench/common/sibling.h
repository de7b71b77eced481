// SPDX-License-Identifier: Apache-2.0
//
// The folder of this program. Threads: any.
#pragma once

#include <filesystem>

namespace tc::bench {

// What lies beside this program, in libexec/threechains: ifunc-toolchain, report/, model/.
inline std::filesystem::path sibling(const char* name) {
  std::error_code error;  // then the path does not exist, and whoever opens it says so
  return std::filesystem::read_symlink("/proc/self/exe", error).parent_path() / name;
}

}  // namespace tc::bench
