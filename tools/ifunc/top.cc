// SPDX-License-Identifier: Apache-2.0
//
// `ifunc top`: what nodes do, refreshed. The screen is a program of its own, which links ncurses (tools/ifunc-top).
#include "ifunc/commands.h"
#include "ifunc/top_options.h"

namespace tc::command {

void add_top(CLI::App& app, char** argv, int& exit_code) {
  auto* sub = app.add_subcommand("top", "Show what nodes do, refreshed: their rates, ifuncs and links");
  sub->footer(
      "A line for each node, and below it the ifuncs, the links or the numbers of the selected one, or of all. Rates\n"
      "are what has changed between two looks. A node that does not answer stays, with the reason, and is tried\n"
      "again. `h` shows the keys. A peer that may connect may ask, also one that may run no code.\n\n"
      "Exit codes, when it ends: 0 all nodes answered; 1 a node was reached, and did not answer or is draining; 2\n"
      "wrong usage; 69 a node cannot be reached; 77 it refuses this key; 78 the configuration of this side is bad.\n"
      "Of several nodes the greatest counts.\n\n"
      "  ifunc top 127.0.0.1:7000\n"
      "  ifunc top --interval 10 --sort busy node7.example:7000 node8.example:7000\n"
      "  ifunc top --once 127.0.0.1:7000 >now.txt");
  const auto options = std::make_shared<TopOptions>();
  options->add_to(*sub);
  // It gets the same arguments, which are known to be right now.
  sub->callback([options, argv, &exit_code] { exit_code = exec_top(argv); });
}

}  // namespace tc::command
