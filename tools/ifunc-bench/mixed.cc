// SPDX-License-Identifier: Apache-2.0
//
// `ifunc bench mixed`.
#include "mixed/mixed.h"

#include <memory>

#include "common/node.h"
#include "ifunc-bench/commands.h"
#include "ifunc-bench/print.h"

namespace tc::command {

void add_mixed(CLI::App& parent, int& exit_code) {
  auto* const command = parent.add_subcommand(
      "mixed", "What long calls of one client cost another one at the same target, beside UCX Active Messages");
  const auto options = std::make_shared<bench::MixedOptions>();
  command->add_option("--transport", options->transport, "shm, tcp, tls (encrypted TCP), ucx-shm or ucx-tcp")
      ->check(CLI::IsMember(bench::transport_names()))
      ->capture_default_str();
  command->add_option("--runs", options->runs, "Interleaved runs")->check(CLI::Range(1, 1000))->capture_default_str();
  command->add_option("--calls", options->calls, "Long calls that the first client keeps queued")
      ->check(CLI::Range(2u, 10'000u))
      ->capture_default_str();
  command->add_option("--long-us", options->long_us, "Microseconds that a long call takes")
      ->check(CLI::Range(1u, 1'000'000u))
      ->capture_default_str();
  command
      ->add_option("--phase-ms", options->phase_ms,
                   "Milliseconds of small calls of each kind, and of each rate, in a run")
      ->check(CLI::Range(1u, 60'000u))
      ->capture_default_str();
  command->add_flag("--json", options->json, "One JSON object (docs/measuring.md)");
  command->callback([options, &exit_code] { exit_code = print(bench::run_mixed(*options), options->json); });
}

}  // namespace tc::command
