// SPDX-License-Identifier: Apache-2.0
//
// `ifunc inspect`: what an .ifunc file holds.
#include "toolchain/inspect.h"

#include <cstdio>

#include "ifunc/commands.h"
#include "ifunc/keys.h"

namespace tc::command {
void add_inspect(CLI::App& app, int& exit_code) {
  auto* sub = app.add_subcommand("inspect", "Show what an .ifunc file holds: manifest, slices, sizes, symbols");
  struct Options {
    std::string file;
    bool json = false;
  };
  auto options = std::make_shared<Options>();
  sub->add_option("FILE", options->file, "An .ifunc file")->required();
  sub->add_flag("--json", options->json, "Print one JSON object");
  sub->footer(
      "Machine code (needs the toolchain):\n"
      "  ifunc inspect --asm FILE                           # as it is in the file, for this machine's kind\n"
      "  ifunc inspect --asm --cpu NAME FILE                # what a node with that CPU would run, once tuned\n"
      "  ifunc inspect --asm --target TRIPLE --cpu NAME FILE\n"
      "  ifunc inspect --cpu list [--target TRIPLE]         # the CPUs there are; `native` is this machine's");
  sub->callback([options, &exit_code] {
    const auto bundle = read_ifunc_file(options->file);
    if (!bundle) {
      std::fprintf(stderr, "ifunc inspect: %s\n", bundle.error().message.c_str());
      exit_code = 1;
      return;
    }
    std::fputs((options->json ? toolchain::describe_json(*bundle) : toolchain::describe(*bundle)).c_str(), stdout);
  });
}

}  // namespace tc::command
