// SPDX-License-Identifier: Apache-2.0
//
// Families of metrics in the text format OpenMetrics 1.0, which prometheus-cpp does not write:
// https://prometheus.io/docs/specs/om/open_metrics_spec/
//
// Threads: any.
#pragma once

#include <string>
#include <string_view>

#include "ifunc-metrics/families.h"

namespace tc::metrics {

inline constexpr const char* openmetrics_type = "application/openmetrics-text; version=1.0.0; charset=utf-8";

// What the header Accept of a request says: is OpenMetrics wanted at least as much as the older text format?
bool wants_openmetrics(std::string_view accept);

std::string openmetrics_of(const Families& families);

}  // namespace tc::metrics
