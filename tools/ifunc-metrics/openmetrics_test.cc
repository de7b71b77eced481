// SPDX-License-Identifier: Apache-2.0
#include "ifunc-metrics/openmetrics.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>

namespace tc::metrics {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;

TEST(OpenMetrics, names_a_counter_without_total_and_its_samples_with_it) {
  MetricFamily calls{"calls_total", "Calls that ran.", MetricType::Counter, {}};
  calls.metric.emplace_back().counter.value = 3;
  EXPECT_EQ(openmetrics_of({calls}), "# TYPE calls counter\n# HELP calls Calls that ran.\ncalls_total 3\n# EOF\n");
}

TEST(OpenMetrics, has_a_unit_where_the_name_ends_in_one) {
  MetricFamily sent{"sent_bytes_total", "", MetricType::Counter, {}};
  MetricFamily age{"age_seconds", "", MetricType::Gauge, {}};
  age.metric.emplace_back().gauge.value = 1.5;
  EXPECT_EQ(openmetrics_of({sent, age}),
            "# TYPE sent_bytes counter\n# UNIT sent_bytes bytes\n# HELP sent_bytes \n"
            "# TYPE age_seconds gauge\n# UNIT age_seconds seconds\n# HELP age_seconds \nage_seconds 1.5\n# EOF\n");
}

TEST(OpenMetrics, has_bounds_of_histograms_as_numbers_with_a_point) {
  MetricFamily run{"run", "Time.", MetricType::Histogram, {}};
  auto& metric = run.metric.emplace_back();
  metric.label = {{"ifunc", "sum"}};
  metric.histogram.sample_count = 4;
  metric.histogram.sample_sum = 2.25;
  metric.histogram.bucket = {{1, 1e-06}, {3, 2}, {4, std::numeric_limits<double>::infinity()}};
  EXPECT_EQ(openmetrics_of({run}),
            "# TYPE run histogram\n# HELP run Time.\n"
            "run_bucket{ifunc=\"sum\",le=\"1e-06\"} 1\n"
            "run_bucket{ifunc=\"sum\",le=\"2.0\"} 3\n"
            "run_bucket{ifunc=\"sum\",le=\"+Inf\"} 4\n"
            "run_count{ifunc=\"sum\"} 4\nrun_sum{ifunc=\"sum\"} 2.25\n# EOF\n");
}

TEST(OpenMetrics, escapes_what_a_name_or_a_text_may_hold) {
  MetricFamily odd{"odd", "a \"b\" \\ c\nd", MetricType::Gauge, {}};
  odd.metric.emplace_back().label = {{"name", "x\"y\\z\n"}, {"other", ""}};
  EXPECT_EQ(openmetrics_of({odd}),
            "# TYPE odd gauge\n# HELP odd a \\\"b\\\" \\\\ c\\nd\nodd{name=\"x\\\"y\\\\z\\n\",other=\"\"} 0\n# EOF\n");
}

TEST(OpenMetrics, is_sent_to_those_who_want_it_at_least_as_much_as_the_older_format) {
  // Of Prometheus.
  EXPECT_TRUE(
      wants_openmetrics("application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,"
                        "text/plain;version=0.0.4;q=0.5,*/*;q=0.1"));
  EXPECT_TRUE(wants_openmetrics("application/openmetrics-text"));
  EXPECT_TRUE(wants_openmetrics("text/plain ; q=0.2 , application/openmetrics-text ; version=1.0.0 ; q=0.3"));
  for (const auto* other :
       {"", "*/*", "text/plain", "application/openmetrics-text;q=0", "application/openmetrics-text;q=bad",
        "text/plain,application/openmetrics-text;q=0.9", "application/openmetrics-texts", ",,;;q=;", ";q=1"})
    EXPECT_FALSE(wants_openmetrics(other)) << other;
}

}  // namespace
}  // namespace tc::metrics
