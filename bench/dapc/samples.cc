// SPDX-License-Identifier: Apache-2.0
#include "dapc/samples.h"

namespace tc::bench {

double bound_vs_get(uint32_t servers, double get_us, double one_way_us) {
  return get_us * servers / ((servers - 1) * one_way_us);
}

void summarize_runs(const std::vector<DapcRun>& runs, DapcPoint& point) {
  std::map<ChaseMode, std::vector<double>> rates, to_am, to_get, to_c, of_bound, of_pair_bound;
  std::vector<double> one_way, pair_one_way, get;
  for (const auto& run : runs) {
    const double am = run.rate.at(ChaseMode::am), by_get = run.rate.at(ChaseMode::get);
    const double get_us = 1e6 / (by_get * point.depth);
    get.push_back(get_us);
    if (run.one_way_us > 0) one_way.push_back(run.one_way_us);
    if (run.pair_one_way_us > 0) pair_one_way.push_back(run.pair_one_way_us);
    for (const auto& [mode, rate] : run.rate) {
      rates[mode].push_back(rate);
      to_am[mode].push_back(rate / am);
      to_get[mode].push_back(rate / by_get);
      if (is_translation(mode)) to_c[mode].push_back(rate / run.rate.at(ChaseMode::ifunc_bitcode));
      // One chase at a time is what the bound is about.
      if (!is_ifunc(mode) || run.one_way_us <= 0 || point.inflight != 1) continue;
      of_bound[mode].push_back(rate / by_get / bound_vs_get(point.servers, get_us, run.one_way_us));
      of_pair_bound[mode].push_back(rate / by_get / bound_vs_get(point.servers, get_us, run.pair_one_way_us));
    }
  }
  for (auto& [mode, values] : rates) point.rate[mode] = summarize(values);
  for (auto& [mode, values] : to_am) point.ratio_to_am[mode] = summarize(values);
  for (auto& [mode, values] : to_get) point.ratio_to_get[mode] = summarize(values);
  for (auto& [mode, values] : to_c) point.ratio_to_c[mode] = summarize(values);
  for (auto& [mode, values] : of_bound) point.fraction_of_bound[mode] = summarize(values);
  for (auto& [mode, values] : of_pair_bound) point.fraction_of_pair_bound[mode] = summarize(values);
  point.one_way_us = summarize(one_way);
  point.pair_one_way_us = summarize(pair_one_way);
  point.get_us = summarize(get);
}

}  // namespace tc::bench
