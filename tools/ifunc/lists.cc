// SPDX-License-Identifier: Apache-2.0
//
// `ifunc options` and `ifunc statistics`: the library's tables, to read, or as the pages docs/options.md and
// docs/statistics.md.
#include <fmt/format.h>
#include <threechains/threechains.h>

#include <cstdio>
#include <string>
#include <string_view>

#include "ifunc/commands.h"

namespace tc::command {
namespace {

constexpr const char* options_intro =
    "# Options of a node\n\n"
    "A program sets them with `tc_config_set(config, \"ring-bytes\", \"1M\")` (C, C++), `Node(ring_bytes=\"1M\")` "
    "(Python)\n"
    "or `Node(ring_bytes = \"1M\")` (Julia). `ifunc serve` and `ifunc cluster` take them as `--ring-bytes 1M`; an "
    "option that\n"
    "is on or off is `--tune` or `--no-tune` there. A file for `ifunc serve --config FILE` and `tc_config_read()` is "
    "TOML, with\n"
    "one option a line: strings in quotes, numbers, true or false for what is on or off, and a list of strings for "
    "what may\n"
    "be set many times or has several values:\n\n"
    "```toml\n"
    "# a node for everybody in this network\n"
    "listen = \"10.0.0.2:7171\"\n"
    "trust = \"any\"\n"
    "threads = 4\n"
    "warm-up = true\n"
    "max-message = \"64M\"\n"
    "allow-lib = [\"libz.so.1\", \"libm.so.6\"]\n"
    "```\n\n"
    "For the command, a file also has `data`, `scratch`, `ifunc`, `target-args-data`, `drain`, `stats`, `metrics`,\n"
    "`metrics-host` and `metrics-open`. What the command line says counts more. All that is wrong with a file is said "
    "at once, each with "
    "its line, and `ifunc serve` "
    "exits with\n"
    "78 then. `ifunc serve --check-config FILE` only checks it.\n\n"
    "BYTES may end in K, M or G, which are powers of 1024. Programs find this list with `tc_option_at()`. The page is "
    "the\n"
    "output of `ifunc options --markdown`.\n";

constexpr const char* statistics_intro =
    "# Numbers that a node tells about itself\n\n"
    "`tc_node_stat()` gives one by its name, `node.stats()` all of them (Python), and `ifunc serve --stats` prints "
    "them when\n"
    "it stops. Programs find this list with `tc_statistic_at()`. The page is the output of `ifunc statistics "
    "--markdown`.\n\n"
    "| Name | Unit | What it says |\n|---|---|---|\n";

// In a table | ends a cell.
std::string cell(std::string_view text) {
  std::string escaped;
  for (const char letter : text) {
    if (letter == '|') escaped += '\\';
    escaped += letter;
  }
  return escaped;
}

std::string code(std::string_view text) { return text.empty() ? "" : fmt::format("`{}`", cell(text)); }

// A value is code, words are not.
std::string preset_cell(std::string_view text) { return text.find(' ') == text.npos ? code(text) : cell(text); }

void print_options(bool markdown) {
  if (markdown) std::fputs(options_intro, stdout);
  std::string_view group;
  for (size_t i = 0; i < tc_option_count(); ++i) {
    const auto* const option = tc_option_at(i);
    const std::string_view name = tc_option_name(option), value = tc_option_value(option),
                           preset = tc_option_default(option), help = tc_option_help(option);
    const bool is_new = group != tc_option_group(option);
    group = tc_option_group(option);
    const auto repeatable = tc_option_repeatable(option) != 0 ? " May be set many times." : "";
    if (markdown) {
      if (is_new) fmt::print("\n## {}\n\n| Option | Value | Default | What it is for |\n|---|---|---|---|\n", group);
      fmt::print("| {} | {} | {} | {}{} |\n", code(name), code(value), preset_cell(preset), cell(help), repeatable);
    } else {
      if (is_new) fmt::print("{}{}\n", i == 0 ? "" : "\n", group);
      fmt::print("  {} = {}{}\n      {}{}\n", name, value, preset.empty() ? "" : fmt::format("  ({})", preset), help,
                 repeatable);
    }
  }
}

void print_statistics(bool markdown) {
  if (markdown) std::fputs(statistics_intro, stdout);
  for (size_t i = 0; i < tc_statistic_count(); ++i) {
    const auto* const statistic = tc_statistic_at(i);
    const std::string_view name = tc_statistic_name(statistic), unit = tc_statistic_unit(statistic),
                           help = tc_statistic_help(statistic);
    if (markdown)
      fmt::print("| {} | {} | {} |\n", code(name), unit, cell(help));
    else
      fmt::print("{} ({})\n    {}\n", name, unit, help);
  }
}

void add_list(CLI::App& app, const char* name, const char* about, void (*print)(bool)) {
  auto* const sub = app.add_subcommand(name, about);
  const auto markdown = std::make_shared<bool>(false);
  sub->add_flag("--markdown", *markdown, "As the page in docs/");
  sub->callback([markdown, print] { print(*markdown); });
}

}  // namespace

void add_lists(CLI::App& app) {
  add_list(app, "options", "List the options of a node", print_options);
  add_list(app, "statistics", "List the numbers that a node tells about itself", print_statistics);
}

}  // namespace tc::command
