// SPDX-License-Identifier: Apache-2.0
#include "toolchain/process.h"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <sstream>

extern char** environ;

namespace tc::toolchain {

namespace fs = std::filesystem;

namespace {

bool runnable(const fs::path& file) {
  std::error_code ignored;
  return fs::is_regular_file(file, ignored) && ::access(file.c_str(), X_OK) == 0;
}

std::optional<std::string> along_path(const std::string& name) {
  if (name.find('/') != std::string::npos) return runnable(name) ? std::optional(name) : std::nullopt;
  const char* const path = std::getenv("PATH");
  std::istringstream directories(path ? path : "/usr/local/bin:/usr/bin:/bin");
  for (std::string directory; std::getline(directories, directory, ':');)
    if (const auto file = fs::path(directory.empty() ? "." : directory) / name; runnable(file)) return file.string();
  return std::nullopt;
}

}  // namespace

Result<std::string> find_tool(const char* variable, const std::vector<std::string>& names, std::string_view remedy) {
  if (const char* const chosen = std::getenv(variable); chosen && *chosen) {
    if (auto found = along_path(chosen)) return *found;
    return fail(TC_ERR_NOT_FOUND, "{} is set to '{}', which cannot be run", variable, chosen);
  }
  for (const auto& name : names)
    if (auto found = along_path(name)) return *found;
  return fail(TC_ERR_NOT_FOUND, "there is no {} on the PATH; {}, or set {}", fmt::join(names, " or "), remedy,
              variable);
}

Result<int> run(const std::vector<std::string>& arguments) {
  std::vector<char*> argv;
  for (const auto& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  pid_t child = 0;
  if (const int error = ::posix_spawn(&child, argv[0], nullptr, nullptr, argv.data(), environ); error != 0)
    return fail(TC_ERR_IO, "cannot run {}: {}", arguments[0], std::strerror(error));
  int status = 0;
  while (::waitpid(child, &status, 0) < 0)
    if (errno != EINTR) return fail(TC_ERR_IO, "cannot wait for {}: {}", arguments[0], std::strerror(errno));
  if (WIFSIGNALED(status)) return fail(TC_ERR_IO, "{} was ended by signal {}", arguments[0], WTERMSIG(status));
  return WEXITSTATUS(status);
}

}  // namespace tc::toolchain
