// SPDX-License-Identifier: Apache-2.0
#include "toolchain/process.h"

#include <llvm/Support/FileSystem.h>
#include <llvm/Support/Program.h>

#include <cstdlib>
#include <optional>

#include "base/process.h"

namespace tc::toolchain {

namespace {

std::optional<std::string> along_path(const std::string& name) {
  auto found = llvm::sys::findProgramByName(name);
  if (!found || !llvm::sys::fs::can_execute(*found)) return std::nullopt;
  return std::move(*found);
}

}  // namespace

Result<std::string> find_tool(const char* variable, const std::vector<std::string>& names, std::string_view remedy) {
  if (const char* const chosen = std::getenv(variable); chosen && *chosen) {
    if (auto found = along_path(chosen)) return *found;
    return fail(TC_ERR_INVALID, "{} is set to '{}', which cannot be run", variable, chosen);
  }
  for (const auto& name : names)
    if (auto found = along_path(name)) return *found;
  return fail(TC_ERR_NOT_FOUND, "there is no {} on the PATH; {}, or set {}", fmt::join(names, " or "), remedy,
              variable);
}

Result<int> run(const std::vector<std::string>& arguments) {
  TC_ASSIGN(const auto finished, run_program(arguments));
  if (finished.exit.signal != 0) return fail(TC_ERR_IO, "{} {}", arguments[0], finished.exit.text());
  return finished.exit.code;
}

}  // namespace tc::toolchain
