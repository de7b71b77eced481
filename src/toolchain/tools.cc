// SPDX-License-Identifier: Apache-2.0
#include "toolchain/tools.h"

#include <llvm/Support/FileSystem.h>
#include <llvm/Support/Program.h>

#include <cstdlib>
#include <filesystem>
#include <string_view>

#include "base/process.h"
#ifdef TC_SELF_CONTAINED
#include "toolchain/built_in/tools.h"
#include "toolchain/codegen.h"
#endif

namespace tc::toolchain {

namespace {

#ifdef TC_SELF_CONTAINED
constexpr bool has_built_in_tools = true;
#else
constexpr bool has_built_in_tools = false;
#endif

std::optional<std::string> along_path(const std::string& name) {
  auto found = llvm::sys::findProgramByName(name);
  if (!found || !llvm::sys::fs::can_execute(*found)) return std::nullopt;
  return std::move(*found);
}

bool is_set(const char* variable) {
  const char* const chosen = std::getenv(variable);
  return chosen != nullptr && *chosen != '\0';
}

Result<Tool> find(const char* variable, const char* name, const std::vector<std::string>& programs,
                  std::string_view remedy) {
  if (has_built_in_tools && !is_set(variable)) {
    std::error_code error;
    const auto self = std::filesystem::read_symlink("/proc/self/exe", error);
    if (error) return fail(TC_ERR_IO, "/proc/self/exe: {}; {} names a {} to use", error.message(), variable, name);
    return Tool{{self.string(), name}, true};
  }
  TC_ASSIGN(auto path, find_tool(variable, programs, remedy));
  return Tool{{std::move(path)}, false};
}

}  // namespace

Result<Tool> find_clang(bool cxx) {
  return cxx ? find("TC_CLANGXX", "clang++", {"clang++-22", "clang++"}, "install clang-22")
             : find("TC_CLANG", "clang", {"clang-22", "clang"}, "install clang-22");
}

Result<Tool> find_lld() { return find("TC_LLD", "ld.lld", {"ld.lld-22", "ld.lld"}, "install lld-22"); }

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

std::optional<int> run_built_in_tool([[maybe_unused]] int argc, [[maybe_unused]] const char* const* argv) {
#ifdef TC_SELF_CONTAINED
  if (argc < 2) return std::nullopt;
  const std::string_view name = argv[1];
  const std::vector<const char*> arguments(argv + 1, argv + argc);
  if (name == "clang" || name == "clang++") {
    initialize_targets();
    return built_in::clang(argv[0], arguments);
  }
  if (name == "ld.lld") return built_in::lld(arguments);
#endif
  return std::nullopt;
}

}  // namespace tc::toolchain
