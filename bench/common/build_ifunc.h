// SPDX-License-Identifier: Apache-2.0
//
// Ifuncs that are built when a benchmark starts, for their languages' compilers are not everywhere where this program
// is built: by `ifunc build` of this program, from a source that it carries.
#pragma once

#include <string>

#include "base/bytes.h"
#include "base/result.h"

namespace tc::bench {

// The bundle of ifunc `name` for this machine's kind of processor, out of `source`, whose language is that of a file
// called `file`. TC_ERR_COMPILE: the compiler is missing or refused; it said why on standard error.
Result<Bytes> build_ifunc(const std::string& name, const std::string& file, ByteView source);

}  // namespace tc::bench
