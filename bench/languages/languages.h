// SPDX-License-Identifier: Apache-2.0
//
// `ifunc bench languages`: what a language costs at the target. The same two ifuncs, a dot product and the pointer
// chase, written in each language, compiled by a code store as at a node, in one process, in turn: times, and executed
// instructions, beside C's. Thread: the one that measures.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "common/report.h"

namespace tc::bench {

struct LanguagesOptions {
  std::vector<std::string> languages{"rust", "julia"};  // beside C
  int runs = 301;
  bool json = false;
};

// TC_ERR_COMPILE: a compiler is missing. TC_ERR_INTERNAL: the languages do not give the same.
Result<Report> run_languages(const LanguagesOptions& options);

}  // namespace tc::bench
