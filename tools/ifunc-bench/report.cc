// SPDX-License-Identifier: Apache-2.0
//
// `ifunc bench report` is a Python program, libexec/threechains/report: this finds an interpreter that can draw and
// becomes it.
#include <cstdio>
#include <cstdlib>
#include <memory>

#include "base/process.h"
#include "common/embedded.h"
#include "ifunc-bench/commands.h"

namespace tc::command {

namespace {

constexpr uint64_t import_ms = 30'000;  // matplotlib from a cold disk

struct ReportOptions {
  std::vector<std::string> results;
  std::string output = "report";
  std::string data;
};

bool can_draw(const std::string& python) {
  const auto finished =
      run_program({python, "-c", "import matplotlib"}, {.output = Output::discarded, .errors = Output::discarded},
                  Deadline::after_ms(import_ms));
  return finished && finished->exit.success();
}

// The first that works. A distribution's matplotlib belongs to /usr/bin/python3, which need not be the first in PATH.
std::string find_python(std::string& tried) {
  std::vector<std::string> candidates{"python3", "/usr/bin/python3"};
  if (const char* chosen = std::getenv("PYTHON"); chosen != nullptr && *chosen != 0) candidates = {chosen};
  for (const auto& python : candidates) {
    if (can_draw(python)) return python;
    tried += (tried.empty() ? "" : ", ") + python;
  }
  return {};
}

int run_report(const ReportOptions& options) {
  std::string tried;
  const auto python = find_python(tried);
  if (python.empty()) {
    std::fprintf(stderr,
                 "ifunc bench report: no Python with matplotlib (tried %s): install the package python3-matplotlib, or "
                 "name an interpreter that has it in PYTHON\n",
                 tried.c_str());
    return 1;
  }
  std::vector<std::string> arguments{python, "-B", bench::sibling("report").string(), "-o", options.output};
  if (!options.data.empty()) arguments.insert(arguments.end(), {"--data", options.data});
  arguments.emplace_back("--");
  arguments.insert(arguments.end(), options.results.begin(), options.results.end());
  const auto error = replace_process(python, arguments);
  std::fprintf(stderr, "ifunc bench report: cannot run %s: %s\n", python.c_str(), error.c_str());
  return 1;
}

}  // namespace

void add_report(CLI::App& parent, int& exit_code) {
  auto* const command =
      parent.add_subcommand("report", "One HTML page and figures from saved --json, beside the paper's values");
  const auto options = std::make_shared<ReportOptions>();
  command->add_option("results", options->results, "JSON files of `ifunc bench`, or folders of them")->required();
  command->add_option("-o,--output", options->output, "Folder for the page and its figures")->capture_default_str();
  command->add_option("--data", options->data, "Where the page says that the JSON lies");
  command->callback([options, &exit_code] { exit_code = run_report(*options); });
}

}  // namespace tc::command
