// SPDX-License-Identifier: Apache-2.0
//
// `ifunc bench tsi`.
#include "tsi/tsi.h"

#include <memory>

#include "common/node.h"
#include "ifunc-bench/commands.h"
#include "ifunc-bench/print.h"

namespace tc::command {

void add_tsi(CLI::App& parent, int& exit_code) {
  auto* const command = parent.add_subcommand(
      "tsi", "Target-side increment: latency, rate and first execution, beside UCX Active Messages");
  const auto options = std::make_shared<bench::TsiOptions>();
  command
      ->add_option("--transport", options->transport, "shm, tcp, tls (encrypted TCP, beside plain), ucx-shm or ucx-tcp")
      ->check(CLI::IsMember(bench::transport_names()));
  command->add_option("--runs", options->runs, "Interleaved runs")->check(CLI::Range(1, 1000));
  command->add_option("--latency-rounds", options->latency_rounds, "Round trips in a run (0: by transport)");
  command->add_option("--rate-calls", options->rate_calls, "Calls in a run (0: by transport)");
  command->add_option("--first-samples", options->first_samples, "Never-seen ifuncs sent")
      ->check(CLI::Range(1, 100000));
  command->add_flag("--json", options->json, "One JSON object (docs/measuring.md)");
  command->callback([options, &exit_code] { exit_code = print(bench::run_tsi(*options), options->json); });
}

}  // namespace tc::command
