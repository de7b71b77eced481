// SPDX-License-Identifier: Apache-2.0
//
// What is done with an object before it is linked: it is checked, and bound to variables that stand already.
//
// Thread: any. Every error is TC_ERR_COMPILE.
#pragma once

#include <llvm/ExecutionEngine/JITLink/JITLink.h>

#include "target/jit_plugin.h"

namespace tc::target::jit {

// Refuses what is no ELF object, and thread-local variables, defined or not: JITLink leaves them to a platform that
// we do not have, and on some CPUs links them wrongly instead of saying so.
Status check_symbols(llvm::MemoryBufferRef object);

// Refuses objects for other machines and static constructors.
Status check_graph(llvm::jitlink::LinkGraph& graph, const llvm::Triple& host);

// The object without its own definitions of these variables (docs/code-cache.md): it names them, as it names what others
// define. This is done to the object's bytes, because changing LLVM's graph of it allocates in LLVM's own memory, which
// AddressSanitizer takes for an error where LLVM was built without it.
Result<Bytes> without_definitions(ByteView object, const Variables& variables);

}  // namespace tc::target::jit
