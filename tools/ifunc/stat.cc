// SPDX-License-Identifier: Apache-2.0
//
// `ifunc stat`: what a node that runs says of itself.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <thread>

#include "ifunc/asking.h"
#include "ifunc/commands.h"
#include "ifunc/json.h"

namespace tc::command {
namespace {

struct StatOptions : AskOptions {
  double watch_s = 0;  // 0: once
};

// Of one node, from one look to the next.
struct Watched {
  std::string address;
  std::optional<Told> before;
};

// "" for what a later version counts.
std::string_view unit_of(std::string_view name) {
  for (size_t i = 0; i < tc_statistic_count(); ++i)
    if (tc_statistic_name(tc_statistic_at(i)) == name) return tc_statistic_unit(tc_statistic_at(i));
  return "";
}

std::string duration_text(uint64_t ns) {
  const auto seconds = ns / 1'000'000'000;
  const auto days = seconds / 86'400, hours = seconds / 3600 % 24, minutes = seconds / 60 % 60;
  if (days != 0) return fmt::format("{} d {} h", days, hours);
  if (hours != 0) return fmt::format("{} h {} min", hours, minutes);
  if (minutes != 0) return fmt::format("{} min {} s", minutes, seconds % 60);
  return fmt::format("{} s", seconds);
}

// Since the last look; empty when nothing changed, there was none, or the node has started anew.
std::string change_of(const std::string& name, uint64_t value, const std::optional<Told>& before, const Told& now) {
  if (!before || before->uptime_ns > now.uptime_ns) return "";
  const auto old = std::ranges::find(before->statistics, name, &std::pair<std::string, uint64_t>::first);
  if (old == before->statistics.end() || old->second == value) return "";
  return value > old->second ? fmt::format("+{}", value - old->second) : fmt::format("-{}", old->second - value);
}

void print_table(const Watched& node, const Told& told) {
  fmt::print("{}{} at {}, version {}, up {}\n", told.name, told.id ? fmt::format(" (node {})", *told.id) : "",
             node.address, told.version, duration_text(told.uptime_ns));
  fmt::print("{}{}\n", told.running.empty() ? "runs nothing now" : fmt::format("runs ifunc '{}'", told.running),
             told.is_draining ? "; draining: it ends, and takes no more calls" : "");
  size_t width = 0;
  for (const auto& [name, value] : told.statistics) width = std::max(width, name.size());
  for (const auto& [name, value] : told.statistics) {
    const auto unit = unit_of(name);
    const auto change = change_of(name, value, node.before, told);
    fmt::print("  {:<{}} {:>20}{}{}{}\n", name, width, value, unit.empty() ? "" : " ", unit,
               change.empty() ? "" : fmt::format("  {}", change));
  }
}

// "code-bytes" is code_bytes.
std::string snake_case(std::string name) {
  std::ranges::replace(name, '-', '_');
  return name;
}

std::string json_of(const Told& told) {
  std::vector<std::string> names;
  names.reserve(told.statistics.size());
  std::vector<std::pair<std::string_view, std::string>> members;
  for (const auto& [name, value] : told.statistics)
    members.emplace_back(names.emplace_back(snake_case(name)), fmt::format("{}", value));
  return json::object(members);
}

void print_json(const Watched& node, const Result<Answer>& answer, int exit_code) {
  const auto* const told = answer ? &answer->told : nullptr;
  fmt::print("{}\n", json::object(
                         {{"schema", json::string("threechains-stat/1")},
                          {"time", json::string(timestamp())},
                          {"address", json::string(node.address)},
                          {"state", json::string(word_of(exit_code))},
                          {"exit_code", fmt::format("{}", exit_code)},
                          {"error", answer ? "null" : json::string(answer.error().message)},
                          {"name", told != nullptr ? json::string(told->name) : "null"},
                          {"id", told != nullptr && told->id ? fmt::format("{}", *told->id) : "null"},
                          {"version", told != nullptr ? json::string(told->version) : "null"},
                          {"uptime_ns", told != nullptr ? fmt::format("{}", told->uptime_ns) : "null"},
                          {"running", told != nullptr && !told->running.empty() ? json::string(told->running) : "null"},
                          {"draining", told != nullptr ? json::boolean(told->is_draining) : "null"},
                          {"round_trip_ns", answer ? fmt::format("{}", answer->round_trip_ns) : "null"},
                          {"statistics", told != nullptr ? json_of(*told) : "null"}}));
}

int look_at(Asker& asker, Watched& node, bool as_json) {
  const auto answer = asker.ask(node.address);
  int exit_code = answer ? exit_codes::ok : exit_code_of(answer.error().code);
  if (answer && answer->told.is_draining) exit_code = exit_codes::unhealthy;
  if (as_json)
    print_json(node, answer, exit_code);
  else if (answer)
    print_table(node, answer->told);
  std::fflush(stdout);
  if (!answer) fmt::print(stderr, "ifunc stat: {}: {}\n", node.address, answer.error().message);
  node.before = answer ? std::optional(answer->told) : std::nullopt;
  return exit_code;
}

int stat(Asker& asker, const std::vector<std::string>& addresses, const StatOptions& options) {
  std::vector<Watched> nodes;
  for (const auto& address : addresses) nodes.push_back({.address = address, .before = {}});
  // A pipe gets one look: what reads it would wait for an end that never comes.
  const bool goes_on = options.watch_s > 0 && ::isatty(STDOUT_FILENO) != 0;
  while (true) {
    if (goes_on && !options.json) fmt::print("\x1b[H\x1b[2J{}, every {} s; ^C ends\n", timestamp(), options.watch_s);
    int worst = exit_codes::ok;
    for (auto& node : nodes) worst = std::max(worst, look_at(asker, node, options.json));
    if (!goes_on) return worst;
    std::this_thread::sleep_for(std::chrono::duration<double>(options.watch_s));
  }
}

}  // namespace

void add_stat(CLI::App& app, int& exit_code) {
  auto* sub = app.add_subcommand("stat", "Show what nodes that run say of themselves: their state and statistics");
  sub->footer(
      "`ifunc statistics` says what each number means. A peer that may connect may ask, also one that may run no "
      "code.\n\n"
      "Exit codes: 0 all nodes answered; 1 a node was reached, and did not answer or is draining; 2 wrong usage; 69 a\n"
      "node cannot be reached; 77 it refuses this key; 78 the configuration of this side is bad. Of several nodes the\n"
      "greatest counts.\n\n"
      "  ifunc stat 127.0.0.1:7000\n"
      "  ifunc stat --json node7.example:7000 node8.example:7000\n"
      "  ifunc stat --watch 2 127.0.0.1:7000");
  auto options = std::make_shared<StatOptions>();
  options->add_to(*sub);
  sub->add_option(
         "--watch", options->watch_s,
         "Show it again each time that so many seconds have passed, with what has changed. Once, where standard "
         "output is no terminal")
      ->type_name("SECONDS")
      ->check(CLI::Range(0.1, 86'400.0));
  sub->callback([options, &exit_code] {
    exit_code = run_asking("stat", *options, [&](Asker& asker, const std::vector<std::string>& addresses) {
      return stat(asker, addresses, *options);
    });
  });
}

}  // namespace tc::command
