// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

namespace tc::toolchain::built_in {

// Runs lld for ELF in this process: `arguments[0]` is "ld.lld", the rest as on its command line. Returns its exit status; it
// writes to standard error. Thread: the program's only one, once.
int lld(const std::vector<const char*>& arguments);

}  // namespace tc::toolchain::built_in
