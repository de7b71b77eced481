// SPDX-License-Identifier: Apache-2.0
//
// From a relocatable object to an object slice: a shared object of a fixed layout that the target's loader places
// with two mappings and a handful of relocations.
//
// The layout is that of wire/object_format.h. The text half has the code and everything that is read-only and free of
// relocations. The file is an ELF header, program headers (PT_LOAD, PT_LOAD, PT_DYNAMIC) and those bytes: no section
// headers, no padding. lld links; its output is then rewritten to what a loader of ours reads.
//
// Threads: any.
#pragma once

#include <string>
#include <vector>

#include "base/bytes.h"
#include "wire/target_triple.h"

namespace tc::toolchain {

// TC_ERR_UNSUPPORTED names what the loader could not do: thread-locals, copy or indirect relocations, a text half that
// does not fit.
Result<Bytes> link_object(ByteView object, const TargetTriple& triple, const std::string& label);

// Undefined symbols of a relocatable object, sorted.
Result<std::vector<std::string>> undefined_in_object(ByteView object, const std::string& label);

}  // namespace tc::toolchain
