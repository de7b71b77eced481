// SPDX-License-Identifier: Apache-2.0
#include "simulation/plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "simulation/environment.h"
#include "simulation/memory.h"
#include "story.h"

namespace tc::simulation {

namespace {

using Kind = Event::Kind;

// How often each happens, of a thousand. Each seed has some that never happen and some that happen ten times as often:
// what is rare everywhere meets what is rare nowhere.
struct Weight {
  Kind kind;
  uint32_t weight;
};
constexpr Weight weights[] = {
    {Kind::call, 900},     {Kind::cut, 12},       {Kind::block, 12},    {Kind::partition, 4},  {Kind::crash, 4},
    {Kind::leave, 4},      {Kind::pause, 10},     {Kind::swap, 15},     {Kind::drop_code, 15}, {Kind::flush, 15},
    {Kind::wall_clock, 3}, {Kind::keyring, 15},   {Kind::mischief, 20}, {Kind::library, 10},   {Kind::use, 30},
    {Kind::cancel, 15},    {Kind::no_memory, 12},
};

std::vector<Weight> weights_of(Dice& dice) {
  std::vector<Weight> all(std::begin(weights), std::end(weights));
  for (auto& one : all)
    if (one.kind != Kind::call) one.weight = dice.once_in(4) ? 0 : dice.once_in(6) ? one.weight * 10 : one.weight;
  return all;
}

Kind kind_by(const std::vector<Weight>& weights, Dice& dice) {
  uint64_t sum = 0;
  for (const auto& one : weights) sum += one.weight;
  auto at = dice.below(sum);
  for (const auto& one : weights) {
    if (at < one.weight) return one.kind;
    at -= one.weight;
  }
  return Kind::call;
}

std::vector<uint8_t> some_nodes(Dice& dice, uint32_t nodes, size_t most) {
  std::vector<uint8_t> route(dice.below(most + 1));
  for (auto& node : route) node = static_cast<uint8_t>(dice.below(nodes));
  return route;
}

void make_call(Event& event, Dice& dice, uint32_t nodes, uint64_t largest) {
  event.wants_answer = !dice.once_in(3);
  event.end = static_cast<uint32_t>(dice.once_in(8)   ? story_fails
                                    : dice.once_in(4) ? story_says_nothing
                                                      : story_replies);
  event.filler = dice.skewed(largest);
  if (dice.once_in(3)) event.route = some_nodes(dice, nodes, 8);
  if (dice.once_in(16)) event.injections = static_cast<uint32_t>(event.route.size());
  event.for_ns = 1'000'000 * (dice.once_in(8) ? 1 + dice.skewed(20) : 20 + dice.skewed(30'000));
}

}  // namespace

std::vector<Event> make_plan(uint64_t seed, const PlanOptions& options) {
  Dice dice(seed);
  const auto weights = weights_of(dice);
  const uint64_t largest = uint64_t{1} << (4 + dice.below(16));           // of fillers
  const uint64_t longest_gap_ns = uint64_t{1000} << (2 * dice.below(7));  // 1 us to 4 ms
  std::vector<Event> plan;
  uint64_t at_ns = 0;
  for (uint32_t step = 0; step < options.steps; ++step) {
    if (!dice.once_in(4)) at_ns += dice.skewed(longest_gap_ns);
    Event event{.kind = kind_by(weights, dice), .at_ns = at_ns, .seed = dice.number()};
    event.node = static_cast<uint32_t>(dice.below(options.nodes));
    event.other = static_cast<uint32_t>(dice.below(options.nodes));
    event.for_ns = 1000 + dice.skewed(longest_gap_ns * 64);
    if (event.kind == Kind::call) make_call(event, dice, options.nodes, largest);
    if (event.kind == Kind::library || event.kind == Kind::use) event.for_ns += 50'000'000;
    if (event.kind == Kind::partition) event.route = some_nodes(dice, options.nodes, options.nodes);
    plan.push_back(std::move(event));
  }
  return plan;
}

Leave leave_of(const Event& event) {
  constexpr Leave all[] = {Leave::any, Leave::any, Leave::none, Leave::gone, Leave::revoked};
  return all[event.seed % std::size(all)];
}

std::string_view words_of(Leave leave) {
  switch (leave) {
    case Leave::any: return "run=any";
    case Leave::none: return "run=none";
    case Leave::revoked: return "revoked=2026-01-01";
    case Leave::gone: break;
  }
  return "no line";
}

std::string words_of(const Event& event) {
  const auto when = fmt::format("{:>10.3f} ms  ", static_cast<double>(event.at_ns) / 1e6);
  const auto ms = static_cast<double>(event.for_ns) / 1e6;
  switch (event.kind) {
    case Kind::call:
      return when +
             fmt::format(
                 "node {} calls node {} with {} bytes{}{}{}{}", event.node, event.other, event.filler,
                 event.route.empty() ? "" : fmt::format(", which travels on to {}", fmt::join(event.route, ", ")),
                 event.injections == 0 ? "" : fmt::format(" and injects {}", event.injections),
                 event.end == story_fails ? ", and fails as told" : "",
                 event.wants_answer ? fmt::format("; the answer is due within {} ms", ms) : "; nobody waits");
    case Kind::cut: return when + fmt::format("the connections of nodes {} and {} break off", event.node, event.other);
    case Kind::block:
      return when + fmt::format("what node {} sends to node {} is held up for {} ms", event.node, event.other, ms);
    case Kind::partition:
      return when + fmt::format("nodes {} cannot reach the others for {} ms", fmt::join(event.route, ", "), ms);
    case Kind::crash: return when + fmt::format("node {} dies, and is started again after {} ms", event.node, ms);
    case Kind::leave: return when + fmt::format("node {} ends in good order, and is started again", event.node);
    case Kind::pause: return when + fmt::format("node {} gets no CPU for {} ms", event.node, ms);
    case Kind::swap: return when + fmt::format("node {} gets other code under the name 'story'", event.node);
    case Kind::drop_code: return when + fmt::format("node {} frees code", event.node);
    case Kind::flush: return when + fmt::format("node {} waits until node {} has run all", event.node, event.other);
    case Kind::wall_clock:
      return when + fmt::format("the wall clock is set, by {} s", static_cast<int64_t>(event.seed % 20'000) - 10'000);
    case Kind::keyring:
      return when + fmt::format("the keyring of node {} has for node {}: {}", event.node, event.other,
                                words_of(leave_of(event)));
    case Kind::mischief: return when + fmt::format("a stranger is at node {}", event.node);
    case Kind::library:
      return when + fmt::format("node {} sends node {} version {} of a library", event.node, event.other,
                                library_version_of(event));
    case Kind::use:
      return when + fmt::format("node {} calls node {} with what uses the library", event.node, event.other);
    case Kind::cancel: return when + fmt::format("node {} takes back calls", event.node);
    case Kind::no_memory: {
      const auto shortage = shortage_of(event);
      return when + fmt::format("of node {}, {} allocations succeed and then {} fail", event.node, shortage.succeed,
                                shortage.fail);
    }
  }
  return when;
}

}  // namespace tc::simulation
