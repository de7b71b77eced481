// SPDX-License-Identifier: Apache-2.0
//
// What an object may hold, checked before it is linked.
#pragma once

#include <llvm/ExecutionEngine/JITLink/JITLink.h>

#include "base/result.h"

namespace tc::target::jit {

// Refuses what is no ELF object, and thread-local variables, defined or not: JITLink leaves them to a platform that
// we do not have, and on some CPUs links them wrongly instead of saying so. TC_ERR_COMPILE.
Status check_symbols(llvm::MemoryBufferRef object);

// Refuses objects for other machines and static constructors. TC_ERR_COMPILE.
Status check_graph(llvm::jitlink::LinkGraph& graph, const llvm::Triple& host);

}  // namespace tc::target::jit
