// SPDX-License-Identifier: Apache-2.0
//
// What an object may hold, checked on its link graph before it is linked.
#pragma once

#include <llvm/ExecutionEngine/JITLink/JITLink.h>

#include "base/result.h"

namespace tc::target::jit {

// Refuses objects for other machines, static constructors, thread-locals. TC_ERR_COMPILE.
Status check_graph(llvm::jitlink::LinkGraph& graph, const llvm::Triple& host);

// Does code in it catch exceptions or clean up after them? Otherwise its frame table is of no use.
bool handles_exceptions(llvm::jitlink::LinkGraph& graph);

}  // namespace tc::target::jit
