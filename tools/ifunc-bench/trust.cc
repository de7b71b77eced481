// SPDX-License-Identifier: Apache-2.0
//
// `ifunc bench trust`.
#include <memory>

#include "ifunc-bench/commands.h"
#include "ifunc-bench/print.h"
#include "trust_cost/trust_bench.h"

namespace tc::command {

void add_trust(CLI::App& parent, int& exit_code) {
  auto* const command = parent.add_subcommand("trust", "What signatures, handshakes and a flood of handshakes cost");
  const auto options = std::make_shared<bench::TrustOptions>();
  command->add_option("--runs", options->runs, "Interleaved runs")->check(CLI::Range(1, 1000))->capture_default_str();
  command->add_option("--samples", options->samples, "Never-seen ifuncs of each kind in a run")
      ->check(CLI::Range(1, 10'000))
      ->capture_default_str();
  command->add_option("--phase-ms", options->phase_ms, "Milliseconds of connecting, and of calls, in a run")
      ->check(CLI::Range(1u, 60'000u))
      ->capture_default_str();
  command->add_flag("--json", options->json, "One JSON object (docs/measuring.md)");
  command->callback([options, &exit_code] { exit_code = print(bench::run_trust(*options), options->json); });
}

}  // namespace tc::command
