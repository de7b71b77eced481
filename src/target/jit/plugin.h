// SPDX-License-Identifier: Apache-2.0
//
// The Jit that the plug-in exports, put together from its parts.
//
// Thread: as jit_plugin.h says.
#pragma once

#include <memory>

#include "target/jit/linker.h"
#include "target/jit_plugin.h"

namespace tc::target::jit {

// When LLVM cannot generate code for this host, or there is no memory for code, a Jit that says so whenever it is
// asked for anything.
std::unique_ptr<Jit> make_jit(LinkerOptions options);

}  // namespace tc::target::jit
