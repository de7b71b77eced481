// SPDX-License-Identifier: Apache-2.0
//
// Which undefined symbols a target will be able to give: the same rules as the target's policy, asked at build time
// so that a mistake shows where it can be mended.
//
// Thread: the program's only one.
#pragma once

#include <string>
#include <vector>

#include "toolchain/dependencies.h"
#include "toolchain/importer.h"

namespace tc::toolchain {

struct Resolution {
  std::vector<Library> libraries;         // declared for the target; the source may use them too
  std::vector<Library> source_libraries;  // for the payload functions only: what the sending process has, libc too
  std::vector<std::string> externs;       // --extern: what the target's application exports; "*" for anything
};

// TC_ERR_UNRESOLVED names the symbol, the place and the remedies. `role` source: the ifunc ABI is not there.
Status check_resolvable(const std::vector<Undefined>& undefined, SliceRole role, const Resolution& with,
                        const std::string& name);

// A function of <threechains/ifunc.h> (wire/abi_names.h).
bool is_ifunc_abi(const std::string& symbol);
// A function that compilers call by themselves.
bool is_compiler_runtime(const std::string& symbol);

}  // namespace tc::toolchain
