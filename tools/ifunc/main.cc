// SPDX-License-Identifier: Apache-2.0
//
// The `ifunc` command: one subcommand, one file.
#include <threechains/threechains.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string_view>

#include "ifunc/commands.h"
#include "ifunc/completion.h"
#include "ifunc/usage.h"

namespace {

// The program that links LLVM shows machine code.
bool is_about_assembly(const char* argument) {
  return std::string_view(argument) == "--asm" || std::string_view(argument).starts_with("--cpu");
}

int run(int argc, char** argv) {
  using namespace tc::command;
  // Its arguments are the toolchain's to read, also those behind `--`.
  if (argc > 1 && std::strcmp(argv[1], "build") == 0) return exec_toolchain(argv);
  if (argc > 1 && std::strcmp(argv[1], "bench") == 0) return exec_bench(argv);
  if (argc > 1 && std::strcmp(argv[1], "inspect") == 0 && std::any_of(argv + 2, argv + argc, is_about_assembly))
    return exec_toolchain(argv);

  // What stands behind the first `--` is the command of `ifunc cluster`, and not ours to read.
  int own = 0;
  while (own < argc && std::strcmp(argv[own], "--") != 0) ++own;
  const std::vector<char*> command(argv + std::min(own + 1, argc), argv + argc);

  int exit_code = 0;
  CLI::App app("Move functions, not only data, between the processes of a distributed system.", "ifunc");
  app.set_version_flag("--version", std::string("ifunc ") + tc_version());
  app.require_subcommand(1);
  app.footer(
      "A first round:\n"
      "  ifunc build hello.c                                # hello.ifunc, for x86-64 and aarch64\n"
      "  ifunc serve --listen 127.0.0.1:7000 &              # a node that runs ifuncs\n"
      "  ifunc send hello.ifunc 127.0.0.1:7000 --payload you\n\n"
      "`ifunc COMMAND --help` explains each.");
  add_build(app);
#ifdef TC_HAVE_OPERATORS_COMMANDS
  add_inspect(app, exit_code);
  add_sign(app, exit_code);
  add_trust(app, exit_code);
  add_info(app, exit_code);
#endif
  add_serve(app, exit_code);
  add_send(app, exit_code);
  add_cluster(app, command, exit_code);
#ifdef TC_HAVE_OPERATORS_COMMANDS
  add_ping(app, exit_code);
  add_stat(app, exit_code);
  add_top(app, argv, exit_code);
#endif
  add_key(app, exit_code);
  add_bench(app);
  add_lists(app);
#ifdef TC_HAVE_OPERATORS_COMMANDS
  add_completion(app, exit_code);
#endif
  return parse_and_run(app, own, argv, exit_code);
}

}  // namespace

int main(int argc, char** argv) {
  return tc::command::run_program_main("ifunc", [&] { return run(argc, argv); });
}
