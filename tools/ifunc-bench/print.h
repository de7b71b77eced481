// SPDX-License-Identifier: Apache-2.0
//
// Prints the result of a benchmark, or its error. Thread: the main one.
#pragma once

#include <cstdio>
#include <string>

#include "base/result.h"

namespace tc::command {

// The program's exit code.
inline int complain(const Error& error) {
  std::fprintf(stderr, "ifunc bench: %s\n", error.message.c_str());
  return 1;
}

// `format` makes the text of a result. The program's exit code.
template <class R, class Format>
int print(const Result<R>& result, const Format& format) {
  if (!result) return complain(result.error());
  std::fputs(format(*result).c_str(), stdout);
  return 0;
}

// As one JSON object or as a table.
template <class R>
int print(const Result<R>& result, bool json) {
  return print(result, [json](const R& found) { return json ? format_json(found) : format_table(found); });
}

}  // namespace tc::command
