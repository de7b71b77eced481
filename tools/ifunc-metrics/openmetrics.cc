// SPDX-License-Identifier: Apache-2.0
#include "ifunc-metrics/openmetrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iterator>

namespace tc::metrics {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricType;

// ---- The header Accept: "type/subtype;version=1.0.0;q=0.5, ..."

std::string_view trimmed(std::string_view text) {
  const auto from = text.find_first_not_of(" \t");
  return from == text.npos ? "" : text.substr(from, text.find_last_not_of(" \t") - from + 1);
}

// Cuts off what stands before `separator`.
std::string_view next_of(std::string_view& text, char separator) {
  const auto end = std::min(text.find(separator), text.size());
  const auto part = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return trimmed(part);
}

double quality_of(std::string_view parameters) {
  while (!parameters.empty()) {
    const auto one = next_of(parameters, ';');
    if (one.starts_with("q=") || one.starts_with("Q=")) return std::strtod(std::string(one.substr(2)).c_str(), nullptr);
  }
  return 1;
}

// ---- The page

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\' || c == '"') out += '\\';
    if (c == '\n')
      out += "\\n";
    else
      out += c;
  }
  return out;
}

// As the format writes numbers in a label: with a point or an exponent.
std::string canonical(double value) {
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  auto text = fmt::format("{}", value);
  if (text.find_first_of(".en") == text.npos) text += ".0";
  return text;
}

class Writer {
 public:
  void add(const prometheus::MetricFamily& family) {
    std::string_view name = family.name;
    // The samples of a counter end in "_total", the name of their family does not.
    if (family.type == MetricType::Counter && name.ends_with("_total")) name.remove_suffix(6);
    fmt::format_to(out(), "# TYPE {} {}\n", name, type_of(family.type));
    for (const std::string_view unit : {"seconds", "bytes"})
      if (name.ends_with(fmt::format("_{}", unit))) fmt::format_to(out(), "# UNIT {} {}\n", name, unit);
    fmt::format_to(out(), "# HELP {} {}\n", name, escaped(family.help));
    for (const auto& metric : family.metric) add(name, family.type, metric);
  }
  std::string end() && { return std::move(text_) + "# EOF\n"; }

 private:
  static const char* type_of(MetricType type) {
    switch (type) {
      case MetricType::Counter: return "counter";
      case MetricType::Gauge: return "gauge";
      case MetricType::Histogram: return "histogram";
      default: return "unknown";
    }
  }
  std::back_insert_iterator<std::string> out() { return std::back_inserter(text_); }
  void add(std::string_view name, MetricType type, const ClientMetric& metric) {
    if (type == MetricType::Counter) return sample(name, "_total", metric, {}, metric.counter.value);
    if (type != MetricType::Histogram) return sample(name, "", metric, {}, metric.gauge.value);
    for (const auto& bucket : metric.histogram.bucket)
      sample(name, "_bucket", metric, canonical(bucket.upper_bound), static_cast<double>(bucket.cumulative_count));
    sample(name, "_count", metric, {}, static_cast<double>(metric.histogram.sample_count));
    sample(name, "_sum", metric, {}, metric.histogram.sample_sum);
  }
  void sample(std::string_view name, std::string_view suffix, const ClientMetric& metric, std::string_view bound,
              double value) {
    std::string labels;
    for (const auto& label : metric.label)
      fmt::format_to(std::back_inserter(labels), "{}{}=\"{}\"", labels.empty() ? "" : ",", label.name,
                     escaped(label.value));
    if (!bound.empty()) fmt::format_to(std::back_inserter(labels), "{}le=\"{}\"", labels.empty() ? "" : ",", bound);
    if (!labels.empty()) labels = fmt::format("{{{}}}", labels);
    fmt::format_to(out(), "{}{}{} {}\n", name, suffix, labels, value);
  }

  std::string text_;
};

}  // namespace

bool wants_openmetrics(std::string_view accept) {
  double open = 0, older = 0;
  while (!accept.empty()) {
    auto parameters = next_of(accept, ',');
    const auto type = next_of(parameters, ';');
    const auto quality = quality_of(parameters);
    if (type == "application/openmetrics-text") open = std::max(open, quality);
    if (type == "text/plain") older = std::max(older, quality);
  }
  return open > 0 && open >= older;
}

std::string openmetrics_of(const Families& families) {
  Writer writer;
  for (const auto& family : families) writer.add(family);
  return std::move(writer).end();
}

}  // namespace tc::metrics
