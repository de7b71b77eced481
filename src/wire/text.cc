// SPDX-License-Identifier: Apache-2.0
#include "wire/text.h"

#include <algorithm>

namespace tc::wire {

std::string words(std::string_view text) {
  std::string safe(text);
  for (char& c : safe)
    if ((c >= 0 && c < ' ' && c != '\n' && c != '\t') || c == 127) c = '?';
  return safe;
}

bool printable(std::string_view text) noexcept {
  return std::ranges::all_of(text, [](char c) { return c >= ' ' && c < 127; });
}

bool visible(std::string_view text) noexcept {
  return std::ranges::all_of(text, [](char c) { return c > ' ' && c < 127; });
}

}  // namespace tc::wire
