// SPDX-License-Identifier: Apache-2.0
//
// What `ifunc bench` runs. It links UCX, which our transports are measured beside, and a node must not.
#include <threechains/threechains.h>

#include <cstdio>
#include <exception>

#include "ifunc-bench/commands.h"

namespace {

int run(int argc, char** argv) {
  using namespace tc::command;
  int exit_code = 0;
  CLI::App app("", "ifunc");
  app.require_subcommand(1);
  auto* const bench = app.add_subcommand("bench", "Measure this machine");
  bench->require_subcommand(1);
  for (const auto add : {add_tsi, add_bulk, add_token, add_dapc, add_languages, add_tune, add_ucp_ifunc, add_report,
                         add_graph, add_graph_server, add_tsi_target, add_bulk_target, add_dapc_server})
    add(*bench, exit_code);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  return exit_code;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "ifunc bench: %s\n", error.what());
    return 1;
  }
}
