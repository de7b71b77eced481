// SPDX-License-Identifier: Apache-2.0
//
// The program behind `ifunc bench`. It links UCX, beside which our transports are measured; a node must not link it.
#include "ifunc-bench/commands.h"
#include "ifunc/usage.h"

namespace {

int run(int argc, char** argv) {
  using namespace tc::command;
  int exit_code = 0;
  CLI::App app("", "ifunc");
  app.require_subcommand(1);
  auto* const bench = app.add_subcommand("bench", "Measure this machine");
  bench->require_subcommand(1);
  for (const auto add : {add_tsi, add_bulk, add_mixed, add_token, add_trust, add_dapc, add_languages, add_tune,
                         add_ucp_ifunc, add_report, add_graph, add_partner})
    add(*bench, exit_code);
  return parse_and_run(app, argc, argv, exit_code);
}

}  // namespace

int main(int argc, char** argv) {
  return tc::command::run_program_main("ifunc bench", [&] { return run(argc, argv); });
}
