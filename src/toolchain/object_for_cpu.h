// SPDX-License-Identifier: Apache-2.0
//
// An object slice for a CPU that is named: what a helper makes for a node without LLVM (docs/small-nodes.md).
//
// Thread: the program's only one.
#pragma once

#include <string>

#include "base/bytes.h"

namespace tc::toolchain {

// Compiles target bitcode as a node with that CPU would tune it, and links it to an object slice. `cpu` and `features` are
// LLVM's names. TC_ERR_INVALID for a triple, CPU or feature that LLVM does not know, else Compiler's and link_object's errors.
Result<Bytes> object_for_cpu(ByteView bitcode, const std::string& triple, const std::string& cpu,
                             const std::string& features, const std::string& label);

}  // namespace tc::toolchain
