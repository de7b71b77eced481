// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "trust/grant.h"

namespace tc::trust {

namespace {

bool matches(std::string_view pattern, std::string_view name) noexcept {
  if (!pattern.ends_with('*')) return pattern == name;
  return name.starts_with(pattern.substr(0, pattern.size() - 1));
}

}  // namespace

Names Names::of(std::vector<std::string> patterns) {
  Names names;
  if (std::ranges::find(patterns, "*") == patterns.end()) names.patterns_ = std::move(patterns);
  return names;
}

bool Names::contains(std::string_view name) const noexcept {
  return is_all() || std::ranges::any_of(*patterns_, [&](const auto& pattern) { return matches(pattern, name); });
}

const std::vector<std::string>& Names::patterns() const noexcept { return *patterns_; }

}  // namespace tc::trust
