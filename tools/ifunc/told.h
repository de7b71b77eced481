// SPDX-License-Identifier: Apache-2.0
//
// What a node says of itself, from the lines of tc_endpoint_ask_statistics() and tc_node_report().
//
// Threads: any; plain values.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace tc::command {

// How long something took, in classes (TIMES of tc_endpoint_ask_statistics).
struct Times {
  static constexpr size_t classes = 14;
  // Of all classes but the last, which has no bound.
  static constexpr uint64_t bound_ns(size_t index) noexcept { return uint64_t{250} << (2 * index); }

  uint64_t sum_ns = 0;
  std::array<uint64_t, classes> counts{};  // of each class alone

  uint64_t count() const noexcept { return std::accumulate(counts.begin(), counts.end(), uint64_t{0}); }
  bool operator==(const Times&) const = default;
};

struct IfuncUse {
  std::string name;
  uint64_t calls = 0, failures = 0;
  Times run, latency;
};

struct LinkUse {
  std::string peer, transport;
  uint64_t calls = 0, received_bytes = 0, sent_bytes = 0, waiting_bytes = 0;
};

// What a node says of itself (tc_endpoint_ask_statistics).
struct Told {
  std::string name, version, running;
  std::optional<uint64_t> id;
  uint64_t uptime_ns = 0;
  bool is_draining = false;
  std::vector<std::pair<std::string, uint64_t>> statistics;
  std::vector<std::pair<std::string, uint64_t>> failures;  // by reason
  std::vector<std::pair<std::string, Times>> times;
  std::vector<IfuncUse> ifuncs;
  std::vector<LinkUse> links;
};
// TC_ERR_MALFORMED: a line that is known has no value that makes sense.
Result<Told> parse_told(std::string_view text);

}  // namespace tc::command
