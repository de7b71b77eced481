// SPDX-License-Identifier: Apache-2.0
#include "wire/text.h"

namespace tc::wire {

std::string words(std::string_view text) {
  std::string safe(text);
  for (char& c : safe)
    if ((c >= 0 && c < ' ' && c != '\n' && c != '\t') || c == 127) c = '?';
  return safe;
}

namespace {

// Checks all characters without a branch for each, because nearly always all of them are allowed.
template <char first>
bool all_from(std::string_view text) noexcept {
  bool others = false;
  for (const char c : text) others |= c < first || c > '~';
  return !others;
}

}  // namespace

bool printable(std::string_view text) noexcept { return all_from<' '>(text); }

bool visible(std::string_view text) noexcept { return all_from<'!'>(text); }

}  // namespace tc::wire
