// SPDX-License-Identifier: Apache-2.0
//
// Commands that are programs of their own, because `ifunc` itself must not link what they link.
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "base/process.h"
#include "ifunc/commands.h"

namespace tc::command {

void add_build(CLI::App& app) {
  app.add_subcommand("build", "Compile an ifunc's source file to an .ifunc file (`ifunc build --help`)");
}

void add_bench(CLI::App& app) {
  app.add_subcommand("bench", "Measure this machine, beside UCX (`ifunc bench --help`)");
}

namespace {

// TC_LIBEXEC, else libexec/threechains beside bin/: the same in a build tree and after installation.
std::filesystem::path libexec_path(const char* name) {
  if (const char* directory = std::getenv("TC_LIBEXEC")) return std::filesystem::path(directory) / name;
  std::error_code error;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", error);
  return self.parent_path().parent_path() / "libexec/threechains" / name;
}

// `needs` names the libraries because of which the program is a part of its own. Returns only when it cannot be run.
int become(const char* program, const char* needs, char** argv) {
  const auto path = libexec_path(program).string();
  std::vector<std::string> arguments;
  for (char** argument = argv; *argument != nullptr; ++argument) arguments.emplace_back(*argument);
  const auto error = replace_process(path, arguments);
  std::fprintf(stderr,
               "ifunc %s: cannot run %s: %s. It is a package part of its own, as it needs %s; set TC_LIBEXEC to the "
               "directory that holds %s\n",
               argv[1], path.c_str(), error.c_str(), needs, program);
  return 1;
}

}  // namespace

int exec_toolchain(char** argv) { return become("ifunc-toolchain", "LLVM and clang", argv); }

int exec_bench(char** argv) { return become("ifunc-bench", "UCX", argv); }

int exec_top(char** argv) {
  return become("ifunc-top", "ncurses (install the package threechains, or libncurses-dev before building)", argv);
}

}  // namespace tc::command
