// SPDX-License-Identifier: Apache-2.0
//
// `ifunc bench tune`: the gain from compiling bitcode where it runs. Three kernels, each as machine code for
// the ISA's baseline (the object slice), as bitcode tuned by a code store, and compiled from the same source with
// `clang -O3 -march=native`, in one process, in turn. Thread: the one that measures.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "base/result.h"
#include "common/machine.h"
#include "common/statistics.h"

namespace tc::bench {

struct TuneOptions {
  int runs = 301;
  bool json = false;
};

// The order of the columns.
enum class Build : uint8_t { generic, tuned, native };

struct TuneKernel {
  std::string name;
  std::string unit;  // "gflops" or "gbytes_per_s"; 1e9 operations or bytes a second
  std::array<Summary, 3> rate;
  Summary tuned_to_native, tuned_to_generic;  // the runs' own ratios
};

struct TuneResult {
  TuneOptions options;
  Machine machine;
  std::string compiler;  // what made the native build, by its own words
  std::vector<TuneKernel> kernels;
};

// TC_ERR_NOT_FOUND without clang, TC_ERR_UNSUPPORTED without the JIT plug-in, TC_ERR_INTERNAL when the three do not
// compute the same.
Result<TuneResult> run_tune(const TuneOptions& options);
std::string format_tune(const TuneResult& result);

}  // namespace tc::bench
