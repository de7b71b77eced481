// SPDX-License-Identifier: Apache-2.0
//
// What a node says of itself, as families of metrics for Prometheus. docs/metrics.md lists them.
//
// Threads: any.
#pragma once

#include <prometheus/metric_family.h>

#include <string>
#include <string_view>
#include <vector>

#include "ifunc/told.h"

namespace tc::metrics {

using Families = std::vector<prometheus::MetricFamily>;

// The name of one of the node's statistics: "code-bytes-sent", a total of bytes, is "threechains_code_sent_bytes_total", and
// "load-ns" is "threechains_load_seconds". Prometheus wants the unit at the end, and only base units.
std::string metric_name(std::string_view statistic, std::string_view unit, bool is_total);

// At most this many values of the label `ifunc`, with "other". Each costs the one who stores them 30 time series.
inline constexpr size_t most_ifuncs = 101;

void add_node(Families& families, const command::Told& told);
// When this process started, in seconds since 1970. Clocks may be set: ask once, so that it is the same in each scrape.
double process_start_time();
// Of this process, under the names that Prometheus' own libraries use: CPU time, memory, descriptors, start.
void add_process(Families& families, double started);
// One number.
void add_gauge(Families& families, std::string name, std::string help, double value,
               std::vector<prometheus::ClientMetric::Label> labels = {});

// In the text format 0.0.4.
std::string text_of(const Families& families);

}  // namespace tc::metrics
