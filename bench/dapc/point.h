// SPDX-License-Identifier: Apache-2.0
//
// A point of the sweep: one number of servers, depth and chases in flight, all modes side by side. A ratio is taken
// within each run; the figure is the median of these ratios. Threads: any.
#pragma once

#include <optional>

#include "common/report.h"
#include "dapc/mode.h"

namespace tc::bench {

// What one run of a setting gave.
struct DapcRun {
  std::map<ChaseMode, double> rate;  // chases per second
  double one_way_us = 0;             // of a hop round all servers; 0: not measured, there is one server
  double pair_one_way_us = 0;        // of a hop between two servers while the others sleep
};

// The rate of ifunc chases relative to GET's that hops of `one_way_us` allow: 1 in `servers` steps stays where it is
// and costs nothing, each other one takes one way; a GET takes `get_us` in every step.
double bound_vs_get(uint32_t servers, double get_us, double one_way_us);

struct DapcPoint {
  uint32_t servers = 0, depth = 0, inflight = 0;
  Samples<ChaseMode> rate;
  std::vector<double> one_way_us, pair_one_way_us, get_us;  // `get_us`: one step of `get`
  std::map<ChaseMode, uint64_t> chases;                     // in one run
  // What the servers ran for them in one run. Translations must run as often as C's; empty when there are none.
  std::map<ChaseMode, uint64_t> executed;
  uint64_t answers = 0;  // compared with the expected ones

  void add(const DapcRun& run);
  // Of translations, to ifunc_bitcode.
  std::optional<Summary> ratio_to_c(ChaseMode mode) const;
  // How much of the bound by hops of `one_way_us` is reached. Nothing but for ifunc modes from two servers on, with one
  // chase at a time.
  std::optional<Summary> fraction_of_bound(ChaseMode mode, const std::vector<double>& one_way) const;
};

}  // namespace tc::bench
