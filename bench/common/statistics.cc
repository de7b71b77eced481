// SPDX-License-Identifier: Apache-2.0
#include "common/statistics.h"

#include <algorithm>
#include <cmath>

namespace tc::bench {

namespace {

double quantile(const std::vector<double>& sorted, double q) {
  const double place = q * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<size_t>(std::floor(place));
  const auto above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (sorted[above] - sorted[below]) * (place - std::floor(place));
}

}  // namespace

Summary summarize(std::vector<double> values) {
  if (values.empty()) return {};
  std::ranges::sort(values);
  return {quantile(values, 0.5), quantile(values, 0.25), quantile(values, 0.75)};
}

}  // namespace tc::bench
