// SPDX-License-Identifier: Apache-2.0
//
// `ifunc bench token`.
#include "token/token.h"

#include <cstdlib>
#include <memory>

#include "ifunc-bench/commands.h"
#include "ifunc-bench/print.h"

namespace tc::command {

void add_token(CLI::App& parent, int& exit_code) {
  auto* const command =
      parent.add_subcommand("token", "A token round the nodes of a cluster: `ifunc cluster 4 -- ifunc bench token`");
  const auto options = std::make_shared<bench::TokenOptions>();
  if (const char* addresses = std::getenv("TC_CLUSTER_ADDRESSES"); addresses != nullptr) options->addresses = addresses;
  command->add_option("--addresses", options->addresses, "The cluster's nodes (TC_CLUSTER_ADDRESSES)");
  command->add_option("--hops", options->hops, "Hops in a run")->check(CLI::Range(1u, 65000u));
  command->add_option("--runs", options->runs, "Runs")->check(CLI::Range(1, 1000));
  command->add_flag("--json", options->json, "One JSON object (docs/measuring.md)");
  command->callback([options, &exit_code] { exit_code = print(bench::run_token(*options), options->json); });
}

}  // namespace tc::command
