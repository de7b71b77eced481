// SPDX-License-Identifier: Apache-2.0
#include "ifunc/json.h"

#include <fmt/format.h>

namespace tc::command::json {

std::string string(std::string_view text) {
  std::string out = "\"";
  for (const char letter : text) {
    if (letter == '"' || letter == '\\') out += '\\';
    if (static_cast<unsigned char>(letter) < ' ')
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(letter));
    else
      out += letter;
  }
  return out + '"';
}

std::string object(const std::vector<std::pair<std::string_view, std::string>>& members) {
  std::string out;
  for (const auto& [name, value] : members)
    out += fmt::format("{}{}: {}", out.empty() ? "" : ", ", string(name), value);
  return "{" + out + "}";
}

std::string array(const std::vector<std::string>& values) {
  std::string out;
  for (const auto& value : values) out += (out.empty() ? "" : ", ") + value;
  return "[" + out + "]";
}

}  // namespace tc::command::json
