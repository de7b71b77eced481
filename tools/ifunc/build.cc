// SPDX-License-Identifier: Apache-2.0
//
// `ifunc build` is another program, ifunc-toolchain: it links LLVM, and nodes started by this one must not.
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

int exec_toolchain(char** argv) {
  const auto path = libexec_path("ifunc-toolchain").string();
  execv(path.c_str(), argv);
  std::fprintf(stderr,
               "ifunc %s: cannot run %s: %s. The toolchain is a package part of its own (it needs LLVM and clang); "
               "set TC_LIBEXEC to the directory that holds ifunc-toolchain\n",
               argv[1], path.c_str(), std::strerror(errno));
  return 1;
}

}  // namespace tc::command
