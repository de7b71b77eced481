// SPDX-License-Identifier: Apache-2.0
//
// What a node, its ifuncs and its links did from one look to the next. The time between two looks is that of the node's own
// clock: the answers may have waited on their way.
//
// Threads: any; plain values.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ifunc/asking.h"

namespace tc::top {

using command::Times;
using command::Told;

// Per second. None: there was no look before, or the counter began anew.
using Rate = std::optional<double>;

// How long something took. Short calls are measured now and then, so that there may be none of late.
struct Durations {
  Times of_late, ever;

  const Times& best() const noexcept { return of_late.count() != 0 ? of_late : ever; }
  std::optional<double> mean_ns() const;
  // The class that 99 of 100 do not exceed.
  std::optional<size_t> p99() const;
};

struct IfuncRates {
  std::string name;
  uint64_t calls = 0, failures = 0;  // ever
  Rate calls_per_s, failures_per_s;
  Durations run, latency;
  // Seconds of code that ran, per second: 1 is one thread that does nothing else.
  Rate busy() const;
};

struct LinkRates {
  std::string node, peer, transport;
  uint64_t calls = 0, waiting_bytes = 0;
  Rate calls_per_s, received_per_s, sent_per_s;
};

struct NumberRates {
  std::string name;
  uint64_t value = 0;
  Rate per_s;
};

struct NodeRates {
  Rate calls, failures, received, sent;
  uint64_t links = 0, codes = 0, cell_deaths = 0;
  std::vector<IfuncRates> ifuncs;
  std::vector<LinkRates> links_by_peer;  // those with the same peer and transport are one
  std::vector<NumberRates> numbers;      // statistics, and failures by their reasons
};

NodeRates rates_between(const std::optional<Told>& before, const Told& now);

// Of several nodes: what has the same name is one.
std::vector<IfuncRates> sum_of_ifuncs(std::span<const NodeRates> nodes);
std::vector<NumberRates> sum_of_numbers(std::span<const NodeRates> nodes);
// None where all are.
Rate sum_of(const Rate& one, const Rate& other);

}  // namespace tc::top
