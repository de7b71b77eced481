// SPDX-License-Identifier: Apache-2.0
//
// JSON for the listings of small commands, which need no library for it. Threads: any.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tc::command::json {

// With quotes around it. Bytes from 0x80 on are passed on as they are.
std::string string(std::string_view text);
inline const char* boolean(bool value) noexcept { return value ? "true" : "false"; }
// The values are JSON already.
std::string object(const std::vector<std::pair<std::string_view, std::string>>& members);
std::string array(const std::vector<std::string>& values);

}  // namespace tc::command::json
