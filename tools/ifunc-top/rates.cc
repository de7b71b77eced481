// SPDX-License-Identifier: Apache-2.0
#include "ifunc-top/rates.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

namespace tc::top {
namespace {

// Nodes say what they like; sums stay at the greatest number instead of beginning anew.
uint64_t add(uint64_t one, uint64_t other) {
  return one > std::numeric_limits<uint64_t>::max() - other ? std::numeric_limits<uint64_t>::max() : one + other;
}

void add(Times& sum, const Times& more) {
  sum.sum_ns = add(sum.sum_ns, more.sum_ns);
  for (size_t i = 0; i < Times::classes; ++i) sum.counts[i] = add(sum.counts[i], more.counts[i]);
}

double total_of(const Times& times) {
  double total = 0;
  for (const auto count : times.counts) total += static_cast<double>(count);
  return total;
}

// Empty where a class has fewer than before: then they began anew.
Times since(const Times& before, const Times& now) {
  if (now.sum_ns < before.sum_ns) return {};
  Times times{.sum_ns = now.sum_ns - before.sum_ns};
  for (size_t i = 0; i < Times::classes; ++i) {
    if (now.counts[i] < before.counts[i]) return {};
    times.counts[i] = now.counts[i] - before.counts[i];
  }
  return times;
}

// A node tells about so many ifuncs and links. One that is new among fewer is new at the node; among these it need not be.
constexpr size_t most_told = 100;

// From one look to the next.
struct Span {
  const Told* before = nullptr;
  double seconds = 0;

  Rate rate(uint64_t old, uint64_t value) const {
    if (before == nullptr || value < old) return {};
    return static_cast<double>(value - old) / seconds;
  }
};

uint64_t statistic(const Told& told, std::string_view name) {
  const auto found = std::ranges::find(told.statistics, name, &std::pair<std::string, uint64_t>::first);
  return found == told.statistics.end() ? 0 : found->second;
}

bool has_statistic(const Told& told, std::string_view name) {
  return std::ranges::find(told.statistics, name, &std::pair<std::string, uint64_t>::first) != told.statistics.end();
}

Span span_of(const std::optional<Told>& before, const Told& now) {
  if (!before || before->uptime_ns >= now.uptime_ns) return {};
  // It began anew, and has been there for longer than before already.
  if (statistic(now, "executed") < statistic(*before, "executed")) return {};
  return {.before = &*before, .seconds = static_cast<double>(now.uptime_ns - before->uptime_ns) / 1e9};
}

std::map<std::string, command::IfuncUse> by_name(const std::vector<command::IfuncUse>& ifuncs) {
  std::map<std::string, command::IfuncUse> all;
  for (const auto& one : ifuncs) {
    auto& sum = all[one.name];
    sum.calls = add(sum.calls, one.calls);
    sum.failures = add(sum.failures, one.failures);
    add(sum.run, one.run);
    add(sum.latency, one.latency);
  }
  return all;
}

std::vector<IfuncRates> ifuncs_of(const Span& span, const Told& now) {
  const auto before = by_name(span.before != nullptr ? span.before->ifuncs : std::vector<command::IfuncUse>{});
  std::vector<IfuncRates> all;
  for (const auto& [name, use] : by_name(now.ifuncs)) {
    IfuncRates rates{.name = name, .calls = use.calls, .failures = use.failures};
    rates.run.ever = use.run;
    rates.latency.ever = use.latency;
    const auto known = before.find(name);
    if (known != before.end() || (span.before != nullptr && span.before->ifuncs.size() < most_told)) {
      const auto& old = known != before.end() ? known->second : command::IfuncUse{};
      rates.calls_per_s = span.rate(old.calls, use.calls);
      rates.failures_per_s = span.rate(old.failures, use.failures);
      rates.run.of_late = since(old.run, use.run);
      rates.latency.of_late = since(old.latency, use.latency);
    }
    all.push_back(std::move(rates));
  }
  return all;
}

using LinkName = std::pair<std::string, std::string>;
std::map<LinkName, command::LinkUse> by_peer(const std::vector<command::LinkUse>& links) {
  std::map<LinkName, command::LinkUse> all;
  for (const auto& one : links) {
    auto& sum = all[{one.peer, one.transport}];
    sum.calls = add(sum.calls, one.calls);
    sum.received_bytes = add(sum.received_bytes, one.received_bytes);
    sum.sent_bytes = add(sum.sent_bytes, one.sent_bytes);
    sum.waiting_bytes = add(sum.waiting_bytes, one.waiting_bytes);
  }
  return all;
}

std::vector<LinkRates> links_of(const Span& span, const Told& now) {
  const auto before = by_peer(span.before != nullptr ? span.before->links : std::vector<command::LinkUse>{});
  std::vector<LinkRates> all;
  for (const auto& [key, use] : by_peer(now.links)) {
    LinkRates rates{.node = now.name,
                    .peer = key.first,
                    .transport = key.second,
                    .calls = use.calls,
                    .waiting_bytes = use.waiting_bytes,
                    .calls_per_s = {},
                    .received_per_s = {},
                    .sent_per_s = {}};
    const auto known = before.find(key);
    if (known != before.end() || (span.before != nullptr && span.before->links.size() < most_told)) {
      const auto& old = known != before.end() ? known->second : command::LinkUse{};
      rates.calls_per_s = span.rate(old.calls, use.calls);
      rates.received_per_s = span.rate(old.received_bytes, use.received_bytes);
      rates.sent_per_s = span.rate(old.sent_bytes, use.sent_bytes);
    }
    all.push_back(std::move(rates));
  }
  return all;
}

void append_numbers(std::vector<NumberRates>& all, const Span& span, std::string_view prefix,
                    const std::vector<std::pair<std::string, uint64_t>>* before,
                    const std::vector<std::pair<std::string, uint64_t>>& now) {
  for (const auto& [name, value] : now) {
    NumberRates rates{.name = std::string(prefix) + name, .value = value, .per_s = {}};
    if (before != nullptr) {
      const auto old = std::ranges::find(*before, name, &std::pair<std::string, uint64_t>::first);
      rates.per_s = span.rate(old != before->end() ? old->second : 0, value);
    }
    all.push_back(std::move(rates));
  }
}

}  // namespace

std::optional<double> Durations::mean_ns() const {
  const auto total = total_of(best());
  if (total == 0) return {};
  return static_cast<double>(best().sum_ns) / total;
}

std::optional<size_t> Durations::p99() const {
  const auto total = total_of(best());
  if (total == 0) return {};
  double seen = 0;
  for (size_t i = 0; i < Times::classes; ++i) {
    seen += static_cast<double>(best().counts[i]);
    if (seen >= total * 0.99) return i;
  }
  return Times::classes - 1;
}

Rate IfuncRates::busy() const {
  const auto mean = run.mean_ns();
  if (!calls_per_s || !mean) return {};
  return *calls_per_s * *mean / 1e9;
}

Rate sum_of(const Rate& one, const Rate& other) {
  if (!one || !other) return one ? one : other;
  return *one + *other;
}

NodeRates rates_between(const std::optional<Told>& before, const Told& now) {
  const auto span = span_of(before, now);
  NodeRates rates;
  rates.links = statistic(now, "links");
  rates.codes = statistic(now, "codes");
  rates.cell_deaths = statistic(now, "cell-deaths");
  if (span.before != nullptr) {
    rates.calls = span.rate(statistic(*span.before, "executed"), statistic(now, "executed"));
    rates.failures = span.rate(statistic(*span.before, "failures"), statistic(now, "failures"));
  }
  rates.ifuncs = ifuncs_of(span, now);
  rates.links_by_peer = links_of(span, now);
  for (const auto& link : rates.links_by_peer) {
    rates.received = sum_of(rates.received, link.received_per_s);
    rates.sent = sum_of(rates.sent, link.sent_per_s);
  }
  const auto* const old = span.before;
  // What has come by links that have ended since is in these alone.
  if (old != nullptr && has_statistic(*old, "received-bytes")) {
    rates.received = span.rate(statistic(*old, "received-bytes"), statistic(now, "received-bytes"));
    rates.sent = span.rate(statistic(*old, "sent-bytes"), statistic(now, "sent-bytes"));
  }
  append_numbers(rates.numbers, span, "", old != nullptr ? &old->statistics : nullptr, now.statistics);
  append_numbers(rates.numbers, span, "failures: ", old != nullptr ? &old->failures : nullptr, now.failures);
  return rates;
}

std::vector<IfuncRates> sum_of_ifuncs(std::span<const NodeRates> nodes) {
  std::map<std::string, IfuncRates> all;
  for (const auto& node : nodes)
    for (const auto& one : node.ifuncs) {
      auto& sum = all[one.name];
      sum.name = one.name;
      sum.calls = add(sum.calls, one.calls);
      sum.failures = add(sum.failures, one.failures);
      sum.calls_per_s = sum_of(sum.calls_per_s, one.calls_per_s);
      sum.failures_per_s = sum_of(sum.failures_per_s, one.failures_per_s);
      add(sum.run.of_late, one.run.of_late);
      add(sum.run.ever, one.run.ever);
      add(sum.latency.of_late, one.latency.of_late);
      add(sum.latency.ever, one.latency.ever);
    }
  std::vector<IfuncRates> list;
  for (auto& [name, one] : all) list.push_back(std::move(one));
  return list;
}

std::vector<NumberRates> sum_of_numbers(std::span<const NodeRates> nodes) {
  std::vector<NumberRates> all;
  std::map<std::string, size_t> places;  // they keep the order in which nodes tell them
  for (const auto& node : nodes)
    for (const auto& one : node.numbers) {
      const auto [place, is_new] = places.emplace(one.name, all.size());
      if (is_new) {
        all.push_back(one);
        continue;
      }
      auto& sum = all[place->second];
      sum.value = add(sum.value, one.value);
      sum.per_s = sum_of(sum.per_s, one.per_s);
    }
  return all;
}

}  // namespace tc::top
