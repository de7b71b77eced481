// SPDX-License-Identifier: Apache-2.0
//
// Prints the result of a benchmark, or its error. Thread: the main one.
#pragma once

#include <cstdio>
#include <string>

#include "base/result.h"
#include "common/report.h"

namespace tc::command {

// The program's exit code.
inline int complain(const Error& error) {
  std::fprintf(stderr, "ifunc bench: %s\n", error.message.c_str());
  return 1;
}

// One of the two forms of a report. The program's exit code.
inline int print(const Result<bench::Report>& report, bool json) {
  if (!report) return complain(report.error());
  std::fputs((json ? bench::text_of(report->json) : report->table).c_str(), stdout);
  return 0;
}

}  // namespace tc::command
