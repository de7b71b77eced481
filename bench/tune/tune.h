// SPDX-License-Identifier: Apache-2.0
//
// `ifunc bench tune`: the gain from compiling bitcode where it runs. Three kernels, each as machine code for
// the ISA's baseline (the object slice), as bitcode tuned by a code store, and compiled from the same source with
// `clang -O3 -march=native`, in one process, in turn. Thread: the one that measures.
#pragma once

#include "base/result.h"
#include "common/report.h"

namespace tc::bench {

struct TuneOptions {
  int runs = 301;
  bool json = false;
};

// TC_ERR_NOT_FOUND without clang, TC_ERR_UNSUPPORTED without the JIT plug-in, TC_ERR_INTERNAL when the three do not
// compute the same.
Result<Report> run_tune(const TuneOptions& options);

}  // namespace tc::bench
