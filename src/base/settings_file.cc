// SPDX-License-Identifier: Apache-2.0
#include "base/settings_file.h"

#include <string_view>

#include "base/file.h"

namespace tc {

namespace {

constexpr size_t most_bytes = 1u << 20;

std::string_view trimmed(std::string_view text) noexcept {
  constexpr std::string_view blanks = " \t\r";
  const auto begin = text.find_first_not_of(blanks);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(blanks) - begin + 1);
}

}  // namespace

Result<std::vector<Setting>> read_settings(const std::string& path) {
  TC_ASSIGN(const auto bytes, read_file(path, most_bytes));
  std::string_view rest(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  std::vector<Setting> settings;
  for (unsigned line = 1; !rest.empty(); ++line) {
    const auto end = rest.find('\n');
    const auto text = trimmed(rest.substr(0, end));
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
    if (text.empty() || text.front() == '#') continue;
    const auto equals = text.find('=');
    const auto key = trimmed(text.substr(0, equals));
    if (equals == std::string_view::npos || key.empty())
      return fail(TC_ERR_INVALID, "{}, line {}: '{}' when a line is `key = value`", path, line, text);
    settings.push_back({std::string(key), std::string(trimmed(text.substr(equals + 1))), line});
  }
  return settings;
}

}  // namespace tc
