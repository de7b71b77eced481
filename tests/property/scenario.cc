// SPDX-License-Identifier: Apache-2.0
#include "scenario.h"

#include <algorithm>
#include <bit>

namespace tc::property {

namespace {

constexpr uint64_t kib = 1024, mib = 1024 * kib;

uint64_t mix(uint64_t value) noexcept {
  value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9u;
  value = (value ^ value >> 27) * 0x94d049bb133111ebu;
  return value ^ value >> 31;
}

template <size_t n>
uint64_t one_of(Random& random, const uint64_t (&values)[n]) {
  return values[random.below(n)];
}

}  // namespace

const char* name_of(Action action) noexcept {
  static constexpr const char* names[] = {"send",         "send_many",  "send_with_code", "call",    "poll",
                                          "sleep",        "connect",    "close",          "abandon", "flush",
                                          "give_up_call", "renew_code", "destroy"};
  return names[static_cast<size_t>(action)];
}

uint64_t Random::next() noexcept { return mix(state_ += 0x9e3779b97f4a7c15u); }

bool Wanted::leaves_out(const std::string& what) const { return std::ranges::find(leave_out, what) != leave_out.end(); }

Scenario::Scenario(const Wanted& wanted, uint64_t seed, uint64_t stream)
    : wanted_(wanted), steps_(mix(seed) + stream * 0x632be59bd9b4e019u) {
  Random random(mix(seed + 0x51ed2701));
  for (size_t node = 0; node < wanted.nodes; ++node) settings_.push_back(choose_settings(random, node));
  weigh(random);
}

NodeSettings Scenario::choose_settings(Random& random, size_t node) const {
  NodeSettings made;
  const auto set = [&](std::string key, std::string value) {
    made.options.emplace_back(std::move(key), std::move(value));
  };
  const auto set_number = [&](std::string key, uint64_t value) { set(std::move(key), std::to_string(value)); };
  const auto& transport = wanted_.transport;
  set("id", std::to_string(node));
  set("transport", transport == "tls" ? "tcp" : transport);
  if (transport != "tls") set("trust-network", "127.0.0.0/8");
  if (transport.starts_with("ucx")) set("ucx-tls", "posix,self");
  set("tune", random.one_in(16) ? "on" : "off");
  // Numbers are drawn whatever is left out, so that a seed stays what it is.
  const bool bounds_messages = random.one_in(4);
  const auto max_message = one_of(random, {16 * kib, 64 * kib, 100'000, 1 * mib});
  const bool bounds_memory = random.one_in(8);
  const auto memory = one_of(random, {1 * mib, 4 * mib});
  const auto ring = one_of(random, {4 * kib, 8 * kib, 64 * kib, 256 * kib, 256 * kib, 1 * mib});
  const bool evicts = random.one_in(6);
  const auto batch = one_of(random, {4 * kib, 128 * kib}), window = one_of(random, {64 * kib, 1 * mib});
  made.limits.max_message = 256 * mib;
  if (bounds_messages && !wanted_.leaves_out("max-message")) {
    made.limits.max_message = max_message;
    set_number("max-message", max_message);
  }
  if (bounds_memory && !wanted_.leaves_out("message-memory")) {
    made.limits.little_memory = true;
    set_number("message-memory", memory);
  }
  made.ring_bytes = ring;
  set_number("ring-bytes", ring);
  if (evicts && !wanted_.leaves_out("code-budget")) {
    made.limits.little_code = true;
    set_number("code-budget", 24 * kib);
  }
  if (transport.starts_with("ucx")) {
    set_number("batch-bytes", batch);
    set_number("window-bytes", window);
  }
  return made;
}

// Each seed prefers other steps.
void Scenario::weigh(Random& random) {
  const std::pair<Action, uint32_t> all[] = {
      {Action::send, 60},   {Action::send_many, 20}, {Action::send_with_code, 6}, {Action::call, 60},
      {Action::poll, 30},   {Action::sleep, 6},      {Action::connect, 6},        {Action::close, 5},
      {Action::abandon, 2}, {Action::flush, 6},      {Action::give_up_call, 3},   {Action::renew_code, 2},
      {Action::destroy, 2},
  };
  const bool destroys = random.one_in(2), abandons = random.one_in(2);
  for (auto [action, weight] : all) {
    const auto factor = one_of(random, {0, 1, 1, 1, 2, 4});
    if (action != Action::send && action != Action::call && action != Action::connect)
      weight *= static_cast<uint32_t>(factor);
    if (action == Action::destroy && (!destroys || wanted_.leaves_out("destroy"))) weight = 0;
    if (action == Action::abandon && (!abandons || wanted_.leaves_out("abandon"))) weight = 0;
    if (action == Action::close && wanted_.leaves_out("close")) weight = 0;
    if (action == Action::send_many && wanted_.leaves_out("send_many")) weight = 0;
    weights_.emplace_back(action, weight);
    total_ += weight;
  }
}

Step Scenario::next() {
  Step step{};
  uint64_t at = steps_.below(total_);
  for (const auto& [action, weight] : weights_) {
    step.action = action;
    if (at < weight) break;
    at -= weight;
  }
  for (auto* const number : {&step.node, &step.peer, &step.size, &step.plan, &step.ifunc, &step.time})
    *number = steps_.next();
  return step;
}

// The limits are those of frames, whose sizes count what stands in front of the payload: a header word, and with a call
// 16 bytes more. So sizes a little below a limit matter as well.
uint32_t Scenario::size_of(uint64_t number, size_t from, size_t to) const {
  Random random(number);
  const uint64_t most = wanted_.leaves_out("large") ? 32 * kib : uint64_t{WITNESS_LARGEST};
  const auto kind = random.below(100);
  if (kind < 40) return static_cast<uint32_t>(random.below(64));
  if (kind < 60) return static_cast<uint32_t>(random.below(4 * kib));
  if (kind < 68)  // every order of magnitude alike
    return static_cast<uint32_t>(std::min(most, (uint64_t{1} << random.below(23)) + random.below(1000)));
  const auto& here = settings_[from];
  const auto& there = settings_[to];
  const uint64_t ring = here.ring_bytes, other_ring = there.ring_bytes;
  const uint64_t bounds[] = {4 * kib,
                             32 * kib,
                             64 * kib,
                             128 * kib,
                             ring / 8,
                             ring / 4,
                             ring / 2,
                             ring,
                             2 * ring,
                             other_ring / 8,
                             other_ring / 4,
                             other_ring,
                             64 * kib - 8,
                             128 * kib - 16,
                             1 * mib,
                             4 * mib,
                             std::min<uint64_t>(there.limits.max_message, 4 * mib),
                             std::min<uint64_t>(here.limits.max_message, 4 * mib)};
  static constexpr uint64_t before[] = {0, 8, 16, 24, 32, 40, 48};
  uint64_t size = bounds[random.below(std::size(bounds))] - before[random.below(std::size(before))];
  size += random.below(3);
  size -= 1;
  // Millions of bytes take milliseconds: a few of them are enough.
  if (size > 256 * kib && !random.one_in(4)) size %= 256 * kib;
  return static_cast<uint32_t>(std::min(size, most));
}

}  // namespace tc::property
