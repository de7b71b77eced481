// SPDX-License-Identifier: Apache-2.0
//
// Computes the figures of a point from the runs of its setting. A ratio is taken within each run; the figure is the median of
// these ratios. Threads: any.
#pragma once

#include "dapc/dapc.h"

namespace tc::bench {

// What one run of a setting gave.
struct DapcRun {
  std::map<ChaseMode, double> rate;  // chases per second
  double one_way_us = 0;             // 0: not measured, there is one server
  double pair_one_way_us = 0;
};

// The rate of ifunc chases relative to GET's that hops of `one_way_us` allow: 1 in `servers` steps stays where it is
// and costs nothing, each other one takes one way; a GET takes `get_us` in every step.
double bound_vs_get(uint32_t servers, double get_us, double one_way_us);

// Fills in all of the point's figures that come from the runs.
void summarize_runs(const std::vector<DapcRun>& runs, DapcPoint& point);

}  // namespace tc::bench
