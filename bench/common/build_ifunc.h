// SPDX-License-Identifier: Apache-2.0
//
// Builds an ifunc when a benchmark starts, with `ifunc build`, from a source that this program contains. It cannot be built
// with this program, because the machine that builds it need not have that language's compiler. Threads: any.
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
