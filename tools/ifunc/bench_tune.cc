// SPDX-License-Identifier: Apache-2.0
//
// `ifunc bench tune`.
#include <cstdio>
#include <memory>

#include "ifunc/commands.h"
#include "tune/tune.h"

namespace tc::command {

namespace {

int bench_tune(const bench::TuneOptions& options) {
  const auto result = bench::run_tune(options);
  if (!result) {
    std::fprintf(stderr, "ifunc bench tune: %s\n", result.error().message.c_str());
    return 1;
  }
  std::fputs(bench::format_tune(*result).c_str(), stdout);
  return 0;
}

}  // namespace

void add_bench_tune(CLI::App& bench_command, int& exit_code) {
  auto* const command =
      bench_command.add_subcommand("tune", "Loops as machine code for any CPU, tuned here, and by -march=native");
  const auto options = std::make_shared<bench::TuneOptions>();
  command->add_option("--runs", options->runs, "Interleaved runs")->check(CLI::Range(1, 10000));
  command->add_flag("--json", options->json, "One JSON object (docs/measuring.md)");
  command->callback([options, &exit_code] { exit_code = bench_tune(*options); });
}

}  // namespace tc::command
