// SPDX-License-Identifier: Apache-2.0
//
// Ifuncs that are built when a benchmark starts, for their languages' compilers are not everywhere where this program
// is built: by `ifunc build` of this program, from a source that it carries.
#pragma once

#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"

namespace tc::bench {

struct SourceFile {
  std::string name;
  ByteView text;
};

// The bundle of ifunc `name` for this machine's kind of processor, out of the first file; the others are headers.
// TC_ERR_COMPILE: the compiler is missing or refused; it said why on standard error.
Result<Bytes> build_ifunc(const std::string& name, const std::vector<SourceFile>& files);

}  // namespace tc::bench
