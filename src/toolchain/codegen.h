// SPDX-License-Identifier: Apache-2.0
//
// Machine code: for a named baseline of an ISA from an imported module, or for a named CPU from a bitcode slice.
//
// Threads: any; a module belongs to one.
#pragma once

#include <optional>
#include <string>

#include "base/bytes.h"
#include "wire/target_triple.h"

namespace llvm {
class Module;
}

namespace tc::toolchain {

// The CPU that an object slice is compiled for: old enough to be everywhere, new enough to be worth it.
struct Baseline {
  std::string cpu;       // as LLVM and the manifest name it
  std::string features;  // what that name leaves out
};

// Nothing for architectures that we have no baseline for: their bundles hold bitcode alone.
std::optional<Baseline> baseline_for(const TargetTriple& triple);

// Makes all of LLVM's code generators ready. Once is enough, any thread.
void initialize_targets();

// Is there a code generator for it? TC_ERR_INVALID names the triple and what LLVM says.
Status check_triple(const std::string& triple);

// The triple as LLVM writes it out in full ("x86_64-unknown-linux-gnu").
std::string normalised_triple(const std::string& triple);

// A position-independent relocatable object, optimised at O3 for the baseline. Calls leave through the global
// offset table, so that the linker needs no stubs. `module` is not changed.
Result<Bytes> generate_object(const llvm::Module& module, const Baseline& baseline, const std::string& label);

// An object as a node compiles the module for the first calls, with Effort::baseline. Nobody runs it: it shows which symbols
// that compilation needs. `module` is not changed.
Result<Bytes> generate_first_object(const llvm::Module& module, const Baseline& baseline, const std::string& label);

// An object slice for a CPU that is named: what a helper makes for a node without LLVM (docs/small-nodes.md). Compiles
// target bitcode as a node with that CPU would tune it, and links it. `cpu` and `features` are LLVM's names.
// Assembly is refused. TC_ERR_INVALID for a triple, CPU or feature that LLVM does not know, else Compiler's and
// link_object's errors.
Result<Bytes> object_for_cpu(ByteView bitcode, const std::string& triple, const std::string& cpu,
                             const std::string& features, const std::string& label);

}  // namespace tc::toolchain
