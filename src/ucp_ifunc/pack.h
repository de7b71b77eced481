// SPDX-License-Identifier: Apache-2.0
//
// Loose bitcode to a bundle, by the toolchain's program: entry points get their names, source-side and target-side
// code are taken apart, what could not run elsewhere is refused, as for `ifunc build`. The program is run, not linked:
// it needs LLVM, and a process that only sends ready bundles never does.
//
// Threads: any.
#pragma once

#include <string>
#include <vector>

#include "wire/bundle.h"

namespace tc::ucp {

struct LooseBitcode {
  std::vector<Bytes> modules;  // one for each target
  std::string dependencies;    // as a .deps file has them
};

// TC_ERR_UNSUPPORTED when there is no toolchain; what it says about the bitcode is on stderr.
Result<Bundle> pack(const std::string& name, const LooseBitcode& loose);

}  // namespace tc::ucp
