// SPDX-License-Identifier: Apache-2.0
//
// Code that uses variables which stand already, in the place of its own (docs/code-cache.md).
//
// Thread: any.
#pragma once

#include "target/jit_plugin.h"

namespace tc::target::jit {

// The object without its own definitions of these variables: it names them, as it names what others define. This is done to the
// object's bytes, because changing LLVM's graph of it allocates in LLVM's own memory, which AddressSanitizer takes for an error
// where LLVM was built without it.
Result<Bytes> without_definitions(ByteView object, const Variables& variables);

}  // namespace tc::target::jit
