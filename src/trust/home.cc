// SPDX-License-Identifier: Apache-2.0
#include "trust/home.h"

#include <cstdlib>

#include "trust/grant.h"

namespace tc::trust {

namespace {

// Null: not set, or set to nothing. A program that runs with the rights of its file's owner ignores the variables of
// whoever started it.
const char* variable(const char* name) noexcept {
  const char* const value = ::secure_getenv(name);
  return value != nullptr && *value != '\0' ? value : nullptr;
}

}  // namespace

Result<std::filesystem::path> home() {
  if (const auto* const own = variable("THREECHAINS_HOME")) return std::filesystem::path(own);
  if (const auto* const config = variable("XDG_CONFIG_HOME")) return std::filesystem::path(config) / "threechains";
  if (const auto* const user = variable("HOME")) return std::filesystem::path(user) / ".config" / "threechains";
  return fail(TC_ERR_NOT_FOUND,
              "no variable says where keys are kept: set THREECHAINS_HOME, XDG_CONFIG_HOME or HOME to a folder");
}

Result<std::filesystem::path> key_path(std::string_view name) {
  if (!is_key_name(name))
    return fail(TC_ERR_INVALID,
                "'{}' is no name of a key: one is 1 to 64 letters, digits, '-', '_' and '.', and does not begin with "
                "'.'",
                name.substr(0, 80));
  TC_ASSIGN(const auto folder, home());
  return folder / "keys" / name;
}

}  // namespace tc::trust
