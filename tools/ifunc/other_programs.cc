// SPDX-License-Identifier: Apache-2.0
//
// Commands that are programs of their own: what they link, a node that this one starts must not.
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "ifunc/commands.h"
#include "ifunc/libexec.h"

namespace tc::command {

void add_build(CLI::App& app) {
  app.add_subcommand("build", "Compile an ifunc's source file to an .ifunc file (`ifunc build --help`)");
}

void add_bench(CLI::App& app) {
  app.add_subcommand("bench", "Measure this machine, beside UCX (`ifunc bench --help`)");
}

namespace {

// `needs` is what makes the program a part of its own. Returns only when it cannot be run.
int become(const char* program, const char* needs, char** argv) {
  const auto path = libexec_path(program).string();
  execv(path.c_str(), argv);
  std::fprintf(stderr,
               "ifunc %s: cannot run %s: %s. It is a package part of its own, as it needs %s; set TC_LIBEXEC to the "
               "directory that holds %s\n",
               argv[1], path.c_str(), std::strerror(errno), needs, program);
  return 1;
}

}  // namespace

int exec_toolchain(char** argv) { return become("ifunc-toolchain", "LLVM and clang", argv); }

int exec_bench(char** argv) { return become("ifunc-bench", "UCX", argv); }

}  // namespace tc::command
