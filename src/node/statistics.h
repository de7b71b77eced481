// SPDX-License-Identifier: Apache-2.0
//
// The numbers that a node tells about itself: one table, from which come tc_node_stat(), the list that tc_statistic_at()
// gives to programs, `ifunc serve --stats`, and docs/statistics.md. A peer that asks gets all of them.
//
// Thread: any for the table, which is constant; Node::statistics() is the node's thread's.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "wire/statistics.h"

namespace tc::node {

// In the order of the table.
struct Numbers {
  uint64_t executed, failures, stuck, cell_calls, cell_deaths, cell_data_waits;
  uint64_t codes, code_bytes, code_loads, object_loads, baseline_compiles, tuned, code_evictions, rebinds, retired;
  uint64_t cache_hits, load_ns, first_execution_ns;
  uint64_t links, dropped_links, refused_peers, denied_codes, throttled, late_answers;
  uint64_t code_bytes_sent, needs, slice_requests, compile_requests, compiled_for_others;
};

struct Statistic {
  enum class Kind : uint8_t {
    total,  // only grows since the node began
    now,    // what is so now, or was so last
  };
  const char* name;  // "code-bytes"
  const char* unit;  // "bytes", "ns", "calls", ...
  const char* help;  // one sentence
  uint64_t Numbers::* number;
  Kind kind;
};

std::span<const Statistic> statistics() noexcept;

// What a node told about itself, as tc_endpoint_ask_statistics() gives it to programs: a line for each thing.
std::string lines_of(const wire::NodeReport& report);

}  // namespace tc::node
