// SPDX-License-Identifier: Apache-2.0
//
// Where the two pinned processes of a benchmark run. A message between two CPUs that share a cache takes a fraction of
// one between CPUs that do not. What the system says of caches is a claim in a virtual machine, whose CPUs the host
// moves; so the round trip of two flags is measured as well. Thread: the one that measures.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <string>
#include <vector>

#include "common/statistics.h"

namespace tc::bench {

struct Placement {
  int cpus[2] = {-1, -1};
  int shared_cache_level = 0;  // the lowest that both use, as the system says; 0: none, or unknown
  Summary flag_ns;             // half of a round trip of two flags (floor/raw_memory.h), of each run
  double least_flag_ns = 0;    // of all runs: what else runs on the machine makes the others slow

  void set_flags(const std::vector<double>& runs);
  // "near": the flags of three runs in four took less than far_ns; "far": those of no run did. "mixed": the host moved the CPUs
  // during the benchmark, or something else ran on them.
  const char* verdict() const noexcept;
  static constexpr double far_ns = 100;
};

// Of the first two CPUs that this process may use. To be called before it is pinned; set_flags() does the rest.
Placement describe_placement();
// "CPUs 0 and 1 share an L3 cache (as the system says) and are near: two flags take 55.1 ns ..."
std::string format_placement(const Placement& placement);
void put_placement(nlohmann::ordered_json& root, const Placement& placement);

}  // namespace tc::bench
