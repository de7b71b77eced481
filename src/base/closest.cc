// SPDX-License-Identifier: Apache-2.0
#include "base/closest.h"

#include <fmt/format.h>

#include <algorithm>

namespace tc {

namespace {

// How many letters must be changed, added, left out, or swapped with their neighbours.
size_t distance(std::string_view one, std::string_view other) {
  std::vector<std::vector<size_t>> at(one.size() + 1, std::vector<size_t>(other.size() + 1));
  for (size_t i = 0; i <= one.size(); ++i)
    for (size_t j = 0; j <= other.size(); ++j) {
      if (i == 0 || j == 0) {
        at[i][j] = i + j;
        continue;
      }
      const size_t changed = at[i - 1][j - 1] + (one[i - 1] == other[j - 1] ? 0 : 1);
      at[i][j] = std::min({changed, at[i - 1][j] + 1, at[i][j - 1] + 1});
      const bool are_swapped = i > 1 && j > 1 && one[i - 1] == other[j - 2] && one[i - 2] == other[j - 1];
      if (are_swapped) at[i][j] = std::min(at[i][j], at[i - 2][j - 2] + 1);
    }
  return at[one.size()][other.size()];
}

}  // namespace

std::string_view closest(std::string_view word, const std::vector<std::string>& known) {
  std::string_view best;
  size_t least = std::max<size_t>(1, word.size() / 3) + 1;
  for (const std::string_view one : known) {
    const bool begins_so = word.size() > 3 && one.starts_with(word);
    const size_t differs = begins_so ? 1 : distance(word, one);
    if (differs >= least) continue;
    best = one;
    least = differs;
  }
  return best;
}

std::string there_is_no(std::string_view kind, std::string_view word, const std::vector<std::string>& known) {
  const auto meant = closest(word, known);
  return fmt::format("there is no {} '{}'{}", kind, word,
                     meant.empty() ? "" : fmt::format("; did you mean '{}'?", meant));
}

}  // namespace tc
