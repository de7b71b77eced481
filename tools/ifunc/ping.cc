// SPDX-License-Identifier: Apache-2.0
//
// `ifunc ping`: how long a question to a node and its answer take.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <thread>

#include "ifunc/asking.h"
#include "ifunc/commands.h"
#include "ifunc/json.h"

namespace tc::command {
namespace {

struct PingOptions : AskOptions {
  uint32_t count = 4;
  double interval_s = 1;
};

// What came of all questions to one node.
struct Series {
  std::string address, transport;
  uint32_t sent = 0;
  std::vector<uint64_t> round_trips_ns;
  std::optional<Told> told;    // with the last answer
  std::optional<Error> error;  // the last one; none: each question was answered
  int exit_code = exit_codes::ok;

  void take(Answer answer) {
    round_trips_ns.push_back(answer.round_trip_ns);
    if (answer.told.is_draining) exit_code = std::max(exit_code, exit_codes::unhealthy);
    told = std::move(answer.told);
  }
  void take(const Error& failure) {
    exit_code = std::max(exit_code, exit_code_of(failure.code));
    error = failure;
  }
};

struct Spread {
  uint64_t min, median, max;
};
// Of at least one.
Spread spread_of(std::vector<uint64_t> values) {
  std::ranges::sort(values);
  const auto half = values.size() / 2;
  return {values.front(), values.size() % 2 != 0 ? values[half] : (values[half - 1] + values[half]) / 2, values.back()};
}

double ms(uint64_t ns) { return static_cast<double>(ns) / 1e6; }

void print_summary(const Series& series) {
  const auto answered = series.round_trips_ns.size();
  fmt::print("--- {} ---\n{} sent, {} answered, {} % lost\n", series.address, series.sent, answered,
             series.sent != 0 ? (series.sent - answered) * 100 / series.sent : 0);
  if (answered == 0) return;
  const auto [min, median, max] = spread_of(series.round_trips_ns);
  fmt::print("round trips min/median/max = {:.3f}/{:.3f}/{:.3f} ms\n", ms(min), ms(median), ms(max));
  if (series.told->is_draining) fmt::print("the node is draining: it ends, and takes no more calls\n");
}

void print_json(const Series& series) {
  std::vector<std::pair<std::string_view, std::string>> members{
      {"schema", json::string("threechains-ping/1")},
      {"time", json::string(timestamp())},
      {"address", json::string(series.address)},
      {"state", json::string(word_of(series.exit_code))},
      {"exit_code", fmt::format("{}", series.exit_code)},
      {"error", series.error ? json::string(series.error->message) : "null"},
      {"name", series.told ? json::string(series.told->name) : "null"},
      {"id", series.told && series.told->id ? fmt::format("{}", *series.told->id) : "null"},
      {"version", series.told ? json::string(series.told->version) : "null"},
      {"draining", series.told ? json::boolean(series.told->is_draining) : "null"},
      {"transport", series.transport.empty() ? "null" : json::string(series.transport)},
      {"sent", fmt::format("{}", series.sent)},
      {"answered", fmt::format("{}", series.round_trips_ns.size())}};
  if (series.round_trips_ns.empty()) {
    for (const auto* const name : {"round_trip_min_ns", "round_trip_median_ns", "round_trip_max_ns"})
      members.emplace_back(name, "null");
  } else {
    const auto [min, median, max] = spread_of(series.round_trips_ns);
    members.emplace_back("round_trip_min_ns", fmt::format("{}", min));
    members.emplace_back("round_trip_median_ns", fmt::format("{}", median));
    members.emplace_back("round_trip_max_ns", fmt::format("{}", max));
  }
  fmt::print("{}\n", json::object(members));
}

void ask_once(Asker& asker, Series& series, const PingOptions& options) {
  ++series.sent;
  auto answer = asker.ask(series.address);
  if (!answer) {
    if (!options.json) fmt::print("no answer from {}: seq={}\n", series.address, series.sent);
    fmt::print(stderr, "ifunc ping: {}: {}\n", series.address, answer.error().message);
    return series.take(answer.error());
  }
  if (!options.json)
    fmt::print("answer from {} by {}: seq={} time={:.3f} ms\n", answer->told.name, series.transport, series.sent,
               ms(answer->round_trip_ns));
  series.take(std::move(*answer));
}

Series ping(Asker& asker, const std::string& address, const PingOptions& options) {
  Series series;
  series.address = address;
  // The connection is made before, so that no round trip has it in it. Where there is none, that is all to be told.
  const auto endpoint = asker.reach(address);
  if (!endpoint) {
    fmt::print(stderr, "ifunc ping: {}: {}\n", address, endpoint.error().message);
    series.take(endpoint.error());
    return series;
  }
  series.transport = (*endpoint)->transport();
  for (uint32_t i = 0; i < options.count; ++i) {
    if (i != 0) std::this_thread::sleep_for(std::chrono::duration<double>(options.interval_s));
    ask_once(asker, series, options);
    std::fflush(stdout);
    if (series.error && exit_code_of(series.error->code) != exit_codes::unhealthy) break;  // it is gone
  }
  return series;
}

}  // namespace

void add_ping(CLI::App& app, int& exit_code) {
  auto* sub = app.add_subcommand("ping", "Measure round trips to nodes that run");
  sub->footer(
      "Each round trip is a question that the node's own thread answers, between the ifuncs that it runs. A peer that\n"
      "may connect may ask, also one that may run no code.\n\n"
      "Exit codes: 0 all questions were answered; 1 a node was reached, and did not answer or is draining; 2 wrong\n"
      "usage; 69 a node cannot be reached; 77 it refuses this key; 78 the configuration of this side is bad. Of\n"
      "several nodes the greatest counts.\n\n"
      "  ifunc ping 127.0.0.1:7000\n"
      "  ifunc ping -c 100 -i 0.01 --json node7.example:7000");
  auto options = std::make_shared<PingOptions>();
  options->add_to(*sub);
  sub->add_option("-c,--count", options->count, "How many questions to ask each node")
      ->check(CLI::Range(1u, 1'000'000u))
      ->capture_default_str();
  sub->add_option("-i,--interval", options->interval_s, "Seconds between two questions")
      ->check(CLI::Range(0.0, 86'400.0))
      ->capture_default_str();
  sub->callback([options, &exit_code] {
    exit_code = run_asking("ping", *options, [&](Asker& asker, const std::vector<std::string>& addresses) {
      int worst = exit_codes::ok;
      for (const auto& address : addresses) {
        const auto series = ping(asker, address, *options);
        if (options->json)
          print_json(series);
        else
          print_summary(series);
        std::fflush(stdout);
        worst = std::max(worst, series.exit_code);
      }
      return worst;
    });
  });
}

}  // namespace tc::command
