// SPDX-License-Identifier: Apache-2.0
//
// `ifunc bench languages`: what a language costs at the target. The same two ifuncs, a dot product and the pointer
// chase, written in each language, compiled by a code store as at a node, in one process, in turn: times, and executed
// instructions, beside C's. Thread: the one that measures.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "common/machine.h"
#include "common/statistics.h"

namespace tc::bench {

struct LanguagesOptions {
  std::vector<std::string> languages{"rust", "julia"};  // beside C
  int runs = 301;
  bool json = false;
};

// One language's code for one kernel, in one form.
struct LanguageCode {
  std::string language;
  Summary ns;                            // of a call
  Summary to_c;                          // the runs' own ratios of times
  std::optional<uint64_t> instructions;  // of a call; nothing where they cannot be counted
};

struct LanguagesKernel {
  std::string name;
  std::string form;                 // "tuned": the bitcode, compiled here; "generic": the object slice
  std::vector<LanguageCode> codes;  // C's first
};

struct LanguagesResult {
  LanguagesOptions options;
  Machine machine;
  std::vector<LanguagesKernel> kernels;
};

// TC_ERR_COMPILE: a compiler is missing. TC_ERR_INTERNAL: the languages do not give the same.
Result<LanguagesResult> run_languages(const LanguagesOptions& options);
std::string format_languages(const LanguagesResult& result);

}  // namespace tc::bench
