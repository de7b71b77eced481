// SPDX-License-Identifier: Apache-2.0
//
// The Jit that the plug-in exports, put together from its parts.
#pragma once

#include <memory>

#include "target/jit/linker.h"
#include "target/jit_plugin.h"

namespace tc::target::jit {

// TC_ERR_UNSUPPORTED when LLVM cannot generate code for this host; TC_ERR_NO_MEMORY.
Result<std::unique_ptr<Jit>> make_jit(LinkerOptions options);

}  // namespace tc::target::jit
