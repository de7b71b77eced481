// SPDX-License-Identifier: Apache-2.0
#include "ifunc-metrics/families.h"

#include <prometheus/text_serializer.h>
#include <threechains/threechains.h>

#include <algorithm>
#include <limits>
#include <map>
#include <sstream>

namespace tc::metrics {

using command::IfuncUse;
using command::LinkUse;
using command::Times;
using command::Told;
using prometheus::ClientMetric;
using prometheus::MetricType;

namespace {

using Labels = std::vector<ClientMetric::Label>;

constexpr double seconds(uint64_t ns) { return static_cast<double>(ns) / 1e9; }

// One family, to which metrics are added.
class Family {
 public:
  Family(Families& families, std::string name, MetricType type, std::string help)
      : family_(families.emplace_back(std::move(name), std::move(help), type)) {}

  // `value` of a counter or a gauge, whichever the family is.
  void add(double value, Labels labels = {}) {
    auto& metric = family_.metric.emplace_back();
    metric.label = std::move(labels);
    if (family_.type == MetricType::Counter)
      metric.counter.value = value;
    else
      metric.gauge.value = value;
  }
  void add(const Times& times, Labels labels = {}) {
    auto& metric = family_.metric.emplace_back();
    metric.label = std::move(labels);
    auto& histogram = metric.histogram;
    histogram.sample_count = times.count();
    histogram.sample_sum = seconds(times.sum_ns);
    uint64_t cumulative = 0;
    for (size_t i = 0; i + 1 < Times::classes; ++i)
      histogram.bucket.push_back({cumulative += times.counts[i], seconds(Times::bound_ns(i))});
    histogram.bucket.push_back({histogram.sample_count, std::numeric_limits<double>::infinity()});
  }

 private:
  prometheus::MetricFamily& family_;
};

const tc_statistic_t* statistic_named(std::string_view name) {
  for (size_t i = 0; i < tc_statistic_count(); ++i)
    if (name == tc_statistic_name(tc_statistic_at(i))) return tc_statistic_at(i);
  return nullptr;
}

void add_statistics(Families& families, const Told& told) {
  for (const auto& [name, value] : told.statistics) {
    const auto* const statistic = statistic_named(name);
    if (statistic == nullptr) continue;
    const std::string_view unit = tc_statistic_unit(statistic);
    const bool is_total = tc_statistic_is_total(statistic) != 0;
    Family(families, metric_name(name, unit, is_total), is_total ? MetricType::Counter : MetricType::Gauge,
           tc_statistic_help(statistic))
        .add(unit == "ns" ? seconds(value) : static_cast<double>(value));
  }
}

void add_failures(Families& families, const Told& told) {
  if (told.failures.empty()) return;
  Family family(families, "threechains_failures_by_reason_total", MetricType::Counter,
                "Calls that ended badly here, by reason.");
  for (const auto& [reason, count] : told.failures) family.add(static_cast<double>(count), {{"reason", reason}});
}

std::string help_of_time(const std::string& name) {
  if (name == "load") return "How long the check, and the load or compilation, of never-seen code took.";
  if (name == "handshake") return "How long the handshake of a peer's encrypted connection took.";
  return "How long '" + name + "' took.";
}

void add_times(Families& families, const Told& told) {
  for (const auto& [name, times] : told.times)
    Family(families, metric_name(name + "-duration-ns", "ns", false), MetricType::Histogram, help_of_time(name))
        .add(times);
}

void add_to(Times& sum, const Times& times) {
  sum.sum_ns += times.sum_ns;
  for (size_t i = 0; i < Times::classes; ++i) sum.counts[i] += times.counts[i];
}

// Several codes may have one name, as versions of one ifunc do; a time series has one value.
std::map<std::string, IfuncUse> by_name(const std::vector<IfuncUse>& ifuncs) {
  std::map<std::string, IfuncUse> all;
  for (const auto& one : ifuncs) {
    // One place is for "other".
    const bool has_room = all.contains(one.name) || all.size() < most_ifuncs - (all.contains("other") ? 0 : 1);
    auto& sum = all[has_room ? one.name : "other"];
    sum.calls += one.calls;
    sum.failures += one.failures;
    add_to(sum.run, one.run);
    add_to(sum.latency, one.latency);
  }
  return all;
}

void add_ifuncs(Families& families, const Told& told) {
  if (told.ifuncs.empty()) return;
  const auto all = by_name(told.ifuncs);
  const auto each = [&](const char* name, MetricType type, const char* help, const auto& value) {
    Family family(families, name, type, help);
    for (const auto& [ifunc, use] : all) family.add(value(use), {{"ifunc", ifunc}});
  };
  each("threechains_ifunc_calls_total", MetricType::Counter,
       "Calls of an ifunc that ran here. Those with most calls have a name, the rest is 'other'.",
       [](const IfuncUse& use) { return static_cast<double>(use.calls); });
  each("threechains_ifunc_failures_total", MetricType::Counter, "Calls of an ifunc that ended badly here.",
       [](const IfuncUse& use) { return static_cast<double>(use.failures); });
  each("threechains_ifunc_run_seconds", MetricType::Histogram,
       "How long an ifunc's code ran. Of calls that are short, some are measured.",
       [](const IfuncUse& use) { return use.run; });
  each("threechains_ifunc_latency_seconds", MetricType::Histogram,
       "How long a call took here, with its wait for a thread or a cell. Of calls that are short, some are measured.",
       [](const IfuncUse& use) { return use.latency; });
}

void add_links(Families& families, const Told& told) {
  struct Sum {
    uint64_t links = 0, calls = 0, received = 0, sent = 0, waiting = 0;
  };
  std::map<std::string, Sum> all;
  for (const auto& link : told.links) {
    auto& sum = all[link.transport];
    ++sum.links;
    sum.calls += link.calls;
    sum.received += link.received_bytes;
    sum.sent += link.sent_bytes;
    sum.waiting += link.waiting_bytes;
  }
  const auto each = [&](const char* name, const char* help, uint64_t Sum::* number) {
    Family family(families, name, MetricType::Gauge, help);
    for (const auto& [transport, sum] : all) family.add(static_cast<double>(sum.*number), {{"transport", transport}});
  };
  if (all.empty()) return;
  each("threechains_connections", "Connections to peers, by transport; of many, the 100 by which most calls came.",
       &Sum::links);
  // Not counters: they fall when a connection ends.
  each("threechains_connections_calls", "Calls that came by the connections that there are now.", &Sum::calls);
  each("threechains_connections_received_bytes", "Bytes received by the connections that there are now.",
       &Sum::received);
  each("threechains_connections_sent_bytes", "Bytes sent by the connections that there are now.", &Sum::sent);
  each("threechains_connections_waiting_bytes", "Bytes that wait to be sent to peers.", &Sum::waiting);
}

}  // namespace

std::string metric_name(std::string_view statistic, std::string_view unit, bool is_total) {
  std::string name = "threechains";
  while (!statistic.empty()) {
    const auto word = statistic.substr(0, statistic.find('-'));
    statistic.remove_prefix(std::min(word.size() + 1, statistic.size()));
    if ((unit == "ns" || unit == "bytes") && word == unit) continue;
    name.append("_").append(word);
  }
  if (unit == "ns") name += "_seconds";
  if (unit == "bytes") name += "_bytes";
  if (is_total) name += "_total";
  return name;
}

void add_gauge(Families& families, std::string name, std::string help, double value, Labels labels) {
  Family(families, std::move(name), MetricType::Gauge, std::move(help)).add(value, std::move(labels));
}

void add_node(Families& families, const Told& told) {
  add_gauge(families, "threechains_uptime_seconds", "How long the node has been there.", seconds(told.uptime_ns));
  add_statistics(families, told);
  add_failures(families, told);
  add_times(families, told);
  add_ifuncs(families, told);
  add_links(families, told);
}

std::string text_of(const Families& families) {
  std::ostringstream text;
  prometheus::TextSerializer().Serialize(text, families);
  return std::move(text).str();
}

}  // namespace tc::metrics
