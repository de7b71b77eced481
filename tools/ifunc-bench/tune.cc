// SPDX-License-Identifier: Apache-2.0
//
// `ifunc bench tune`.
#include "tune/tune.h"

#include <memory>

#include "ifunc-bench/commands.h"
#include "ifunc-bench/print.h"

namespace tc::command {

void add_tune(CLI::App& parent, int& exit_code) {
  auto* const command =
      parent.add_subcommand("tune", "Loops as machine code for any CPU, tuned here, and by -march=native");
  const auto options = std::make_shared<bench::TuneOptions>();
  command->add_option("--runs", options->runs, "Interleaved runs")->check(CLI::Range(1, 10000));
  command->add_flag("--json", options->json, "One JSON object (docs/measuring.md)");
  command->callback([options, &exit_code] { exit_code = print(bench::run_tune(*options), options->json); });
}

}  // namespace tc::command
