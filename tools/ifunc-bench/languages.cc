// SPDX-License-Identifier: Apache-2.0
//
// `ifunc bench languages`.
#include "languages/languages.h"

#include <memory>

#include "ifunc-bench/commands.h"
#include "ifunc-bench/print.h"

namespace tc::command {

void add_languages(CLI::App& parent, int& exit_code) {
  auto* const command =
      parent.add_subcommand("languages", "One ifunc in several languages: times and instructions beside C");
  const auto options = std::make_shared<bench::LanguagesOptions>();
  command->add_option("--lang", options->languages, "Languages beside C; each needs its compiler")
      ->delimiter(',')
      ->check(CLI::IsMember({"c", "julia", "rust"}))
      ->capture_default_str();
  command->add_option("--runs", options->runs, "Interleaved runs")->check(CLI::Range(1, 10000))->capture_default_str();
  command->add_flag("--json", options->json, "One JSON object (docs/measuring.md)");
  command->callback([options, &exit_code] { exit_code = print(bench::run_languages(*options), options->json); });
}

}  // namespace tc::command
