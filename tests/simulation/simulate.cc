// SPDX-License-Identifier: Apache-2.0
//
// `simulate --seeds 1-1000`: a simulated cluster for each seed (docs/simulation.md).
#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "base/file.h"
#include "simulation/memory.h"
#include "simulation/outcome.h"
#include "simulation/remains.h"
#include "simulation/scale.h"
#include "simulation/world.h"

namespace tc::simulation {
namespace {

struct Options {
  std::string seeds = "1-300";
  std::string nodes = "3-16";
  uint32_t steps = 2000;
  bool twice = false, shrink = false, tell = false;
};

struct Range {
  uint64_t first = 0, last = 0;
};

Range range_of(const std::string& text) {
  const auto dash = text.find('-');
  const auto first = std::stoull(text.substr(0, dash));
  return {first, dash == std::string::npos ? first : std::stoull(text.substr(dash + 1))};
}

Outcome simulate_here(uint64_t seed, uint32_t nodes, const Code& code, const std::vector<Event>& plan) {
  World world(seed, nodes, code, plan);
  Outcome outcome{.status = world.run(), .sums = {}};
  outcome.hash = world.books().hash();
  outcome.sums = world.books().sums();
  outcome.turns = world.turns();
  outcome.failed_allocations = failed_allocations();
  return outcome;
}

Outcome simulate(uint64_t seed, uint32_t nodes, const Code& code, const std::vector<Event>& plan) {
  return outcome_in_child([&] {
    const auto before = Remains::now();
    auto outcome = simulate_here(seed, nodes, code, plan);
    if (outcome.status) outcome.status = before.check(Remains::now());
    return outcome;
  });
}

uint32_t nodes_of(uint64_t seed, const Range& nodes) {
  return static_cast<uint32_t>(nodes.first + Dice(seed ^ 0xc0de).below(nodes.last - nodes.first + 1));
}

// Leaves out as much as can go: halves, quarters, and so on, as long as it fails.
std::vector<Event> shrink(uint64_t seed, uint32_t nodes, const Code& code, std::vector<Event> plan) {
  for (size_t piece = std::max<size_t>(plan.size() / 2, 1); piece != 0;) {
    bool has_shrunk = false;
    for (size_t at = 0; at < plan.size();) {
      auto less = plan;
      less.erase(less.begin() + static_cast<ptrdiff_t>(at),
                 less.begin() + static_cast<ptrdiff_t>(std::min(at + piece, plan.size())));
      if (!simulate(seed, nodes, code, less).status)
        plan = std::move(less), has_shrunk = true;
      else
        at += piece;
    }
    if (!has_shrunk || piece != 1) piece /= 2;
  }
  return plan;
}

void tell(const std::vector<Event>& plan) {
  for (size_t i = 0; i < plan.size(); ++i) fmt::print("{:>5}  {}\n", i + 1, words_of(plan[i]));
}

int run(const Options& options) {
  const auto code = Code::load();
  if (!code) {
    fmt::print(stderr, "simulate: {}\n", code.error().message);
    return 2;
  }
  const auto seeds = range_of(options.seeds), range = range_of(options.nodes);
  const auto began = std::chrono::steady_clock::now();
  uint64_t failed = 0, turns = 0, failed_allocations = 0;
  Books::Sums sums;
  for (auto seed = seeds.first; seed <= seeds.last; ++seed) {
    const auto nodes = nodes_of(seed, range);
    auto plan = make_plan(seed, {.nodes = nodes, .steps = options.steps});
    const auto outcome = simulate(seed, nodes, *code, plan);
    sums += outcome.sums;
    turns += outcome.turns;
    failed_allocations += outcome.failed_allocations;
    if (options.twice && simulate(seed, nodes, *code, plan).hash != outcome.hash) {
      fmt::print("seed {}: the same seed makes another story the second time\n", seed);
      ++failed;
    }
    if (options.tell)
      fmt::print("seed {}: {} nodes, {} runs, hash {:016x}\n", seed, nodes, outcome.sums.runs, outcome.hash);
    if (outcome.status) continue;
    ++failed;
    fmt::print("seed {} with {} nodes: {}\n  again: simulate --seeds {} --nodes {} --steps {} --shrink\n", seed, nodes,
               outcome.status.error().message, seed, options.nodes, options.steps);
    if (!options.shrink) continue;
    plan = shrink(seed, nodes, *code, std::move(plan));
    fmt::print("what is left of it: {}\n", simulate(seed, nodes, *code, plan).status.error().message);
    tell(plan);
  }
  const auto seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  fmt::print(
      "{} seeds of {} steps: {} failed\n"
      "{} calls accepted, {} refused at once; {} runs; {} answers, {} failures told; {} allocations failed; {} turns "
      "in "
      "{:.1f} s\n",
      seeds.last - seeds.first + 1, options.steps, failed, sums.accepted, sums.refused, sums.runs, sums.answered,
      sums.failed, failed_allocations, turns, seconds);
  return failed == 0 ? 0 : 1;
}

// One cluster of many small nodes.
int run_scale(const ScaleOptions& options, bool twice) {
  uint64_t hash = 0;
  for (const bool again : {false, true}) {
    if (again && !twice) break;
    Scale scale(options);
    if (const auto status = scale.run(); !status) {
      fmt::print("{}\n", status.error().message);
      return 1;
    }
    if (again && hash != scale.hash()) {
      fmt::print("the same seed takes other turns the second time\n");
      return 1;
    }
    hash = scale.hash();
  }
  return 0;
}

}  // namespace
}  // namespace tc::simulation

int main(int argc, char** argv) {
  tc::simulation::Options options;
  CLI::App app("A simulated cluster in one thread, for each seed.", "simulate");
  app.add_option("--seeds", options.seeds, "FIRST-LAST, or one")->capture_default_str();
  app.add_option("--nodes", options.nodes, "From how many to how many")->capture_default_str();
  app.add_option("--steps", options.steps, "Events of a seed")->capture_default_str();
  app.add_flag("--twice", options.twice, "Run each seed twice, and compare");
  app.add_flag("--shrink", options.shrink, "Leave out of a seed that fails what can go, and tell the rest");
  app.add_flag("--tell", options.tell, "A line for each seed");
  tc::simulation::ScaleOptions scale;
  const auto* const scale_nodes =
      app.add_option("--scale", scale.nodes, "Instead, a broadcast and chases over so many small nodes")
          ->check(CLI::Range(2, 10'000));
  app.add_option("--chases", scale.chases, "With --scale: at the same time")
      ->capture_default_str()
      ->check(CLI::Range(1, 10'000));
  app.add_option("--depth", scale.depth, "With --scale: of a chase")
      ->capture_default_str()
      ->check(CLI::Range(1, 65'000));
  app.add_option("--entries", scale.entries, "With --scale: of the chase's table at each node")
      ->capture_default_str()
      ->check(CLI::Range(1, 100'000));
  CLI11_PARSE(app, argc, argv);
  const auto home = tc::TemporaryDirectory::create();
  if (!home) return 2;
  ::setenv("THREECHAINS_HOME", home->path().c_str(), 1);
  if (scale_nodes->count() == 0) return tc::simulation::run(options);
  scale.seed = std::stoull(options.seeds);  // the first one
  return tc::simulation::run_scale(scale, options.twice);
}
