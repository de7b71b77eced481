// SPDX-License-Identifier: Apache-2.0
//
// Runs a Jit once, so that what LLVM sets up on first use (3.7 to 6.5 ms) is not paid by the first ifunc.
//
// Thread: the one that links.
#pragma once

#include "target/jit_plugin.h"

namespace tc::target::jit {

// Compiles, links and calls a built-in function. TC_ERR_INTERNAL when it gives a wrong answer.
Status warm_up_with(Jit& jit);

}  // namespace tc::target::jit
