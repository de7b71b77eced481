// SPDX-License-Identifier: Apache-2.0
//
// An object slice as text. It has neither sections nor names besides its entry points, so tools that expect those
// (llvm-objdump -d) show nothing of it.
//
// Thread: the program's only one.
#pragma once

#include <string>

#include "base/bytes.h"
#include "wire/target_triple.h"

namespace tc::toolchain {

// One instruction a line: its address in the image, what it says; entry points and targets of branches are labels.
// From the first instruction that can be reached to the end of the code; what is none is shown as bytes.
// Errors are the loader's about the object, or TC_ERR_UNSUPPORTED: LLVM has no disassembler.
Result<std::string> disassemble(ByteView object, const TargetTriple& triple);

}  // namespace tc::toolchain
