// SPDX-License-Identifier: Apache-2.0
#include "dapc/point.h"

namespace tc::bench {

double bound_vs_get(uint32_t servers, double get_us, double one_way_us) {
  return get_us * servers / ((servers - 1) * one_way_us);
}

void DapcPoint::add(const DapcRun& run) {
  for (const auto& [mode, value] : run.rate) rate.add(mode, value);
  get_us.push_back(1e6 / (run.rate.at(ChaseMode::get) * depth));
  if (run.one_way_us > 0) one_way_us.push_back(run.one_way_us);
  if (run.pair_one_way_us > 0) pair_one_way_us.push_back(run.pair_one_way_us);
}

std::optional<Summary> DapcPoint::ratio_to_c(ChaseMode mode) const {
  if (!is_translation(mode)) return {};
  return rate.ratio(mode, ChaseMode::ifunc_bitcode);
}

std::optional<Summary> DapcPoint::fraction_of_bound(ChaseMode mode, const std::vector<double>& one_way) const {
  if (!is_ifunc(mode) || one_way.empty() || inflight != 1) return {};
  std::vector<double> fractions;
  for (size_t run = 0; run < get_us.size(); ++run) {
    const auto ratio = rate.all().at(mode)[run] / rate.all().at(ChaseMode::get)[run];
    fractions.push_back(ratio / bound_vs_get(servers, get_us[run], one_way[run]));
  }
  return summarize(std::move(fractions));
}

}  // namespace tc::bench
