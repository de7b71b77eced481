// SPDX-License-Identifier: Apache-2.0
//
// `ifunc bench languages`.
#include <cstdio>
#include <memory>

#include "ifunc/commands.h"
#include "languages/languages.h"

namespace tc::command {

namespace {

int bench_languages(const bench::LanguagesOptions& options) {
  const auto result = bench::run_languages(options);
  if (!result) {
    std::fprintf(stderr, "ifunc bench languages: %s\n", result.error().message.c_str());
    return 1;
  }
  std::fputs(bench::format_languages(*result).c_str(), stdout);
  return 0;
}

}  // namespace

void add_bench_languages(CLI::App& bench_command, int& exit_code) {
  auto* const command =
      bench_command.add_subcommand("languages", "One ifunc in several languages: times and instructions beside C");
  const auto options = std::make_shared<bench::LanguagesOptions>();
  command->add_option("--lang", options->languages, "Languages beside C; each needs its compiler")
      ->delimiter(',')
      ->check(CLI::IsMember({"c", "julia", "rust"}))
      ->capture_default_str();
  command->add_option("--runs", options->runs, "Interleaved runs")->check(CLI::Range(1, 10000))->capture_default_str();
  command->add_flag("--json", options->json, "One JSON object (docs/measuring.md)");
  command->callback([options, &exit_code] { exit_code = bench_languages(*options); });
}

}  // namespace tc::command
