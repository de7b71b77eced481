// SPDX-License-Identifier: Apache-2.0
//
// `ifunc inspect --asm`: the machine code of a bundle, as text, for any CPU that LLVM knows.
//
// Thread: the program's only one.
#pragma once

#include <string>

#include "wire/bundle.h"

namespace tc::toolchain {

struct AssemblyRequest {
  std::string triple;  // empty: this machine's
  std::string cpu;     // LLVM's name of it; "native": this machine's; empty: no CPU in particular
};

// With a CPU: what a node there would make of the bitcode slice once it is tuned, by the plug-in's own steps. Without:
// the object slice, disassembled, or where there is none the bitcode compiled for the ISA's baseline.
// TC_ERR_NO_SLICE when the bundle holds nothing for the triple, TC_ERR_INVALID for a CPU that LLVM does not know.
Result<std::string> assembly(const Bundle& bundle, const AssemblyRequest& request);

// The names that `cpu` may have for a triple, one a line.
Result<std::string> known_cpus(const std::string& triple);

}  // namespace tc::toolchain
