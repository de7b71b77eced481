// SPDX-License-Identifier: Apache-2.0
//
// What compilers say, for the author. A source is compiled once for each target, and most of what is said is the same each
// time: it is shown once.
//
// Thread: the program's only one.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace tc::toolchain {

class Diagnostics {
 public:
  // Runs a compiler, as run() in tools.h does, and writes what it says to standard error, without what was said before.
  // Returns its exit status. TC_ERR_IO.
  Result<int> run(const std::vector<std::string>& command);

  // The part of `words` that has not been said yet: whole messages, each with the lines that belong to it.
  std::string take_new(std::string_view words);

 private:
  std::set<std::string, std::less<>> said_;
};

// Do compilers whose output is captured have somebody who sees colours?
bool shows_colours() noexcept;

}  // namespace tc::toolchain
