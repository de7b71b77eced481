// SPDX-License-Identifier: Apache-2.0
#include "ifunc-metrics/families.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <ctime>
#include <iterator>
#include <regex>
#include <string>

namespace tc::metrics {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* nothing = "0,0,0,0,0,0,0,0,0,0,0,0,0,0,0";

// The page of a node that says this of itself.
std::string page(const std::string& lines) {
  const auto told = command::parse_told(lines);
  EXPECT_TRUE(told) << told.error().message;
  Families families;
  if (told) add_node(families, *told);
  return text_of(families);
}

size_t lines_with(const std::string& text, const std::string& pattern) {
  const std::regex line(pattern);
  return static_cast<size_t>(std::distance(std::sregex_iterator(text.begin(), text.end(), line), {}));
}

TEST(MetricName, has_the_unit_at_its_end_and_only_base_units) {
  EXPECT_EQ(metric_name("executed", "calls", true), "threechains_executed_total");
  EXPECT_EQ(metric_name("links", "connections", false), "threechains_links");
  EXPECT_EQ(metric_name("code-bytes", "bytes", false), "threechains_code_bytes");
  EXPECT_EQ(metric_name("code-bytes-sent", "bytes", true), "threechains_code_sent_bytes_total");
  EXPECT_EQ(metric_name("first-execution-ns", "ns", false), "threechains_first_execution_seconds");
  EXPECT_EQ(metric_name("waiting", "ns", true), "threechains_waiting_seconds_total");
}

TEST(Families, have_counters_and_gauges_of_the_table_with_its_help) {
  EXPECT_THAT(
      page("uptime-ns 1500000000\nstat executed 9\nstat links 2\nstat load-ns 2500000\nstat code-bytes-sent 7\n"),
      AllOf(HasSubstr("# HELP threechains_executed_total Ifuncs that ran.\n"
                      "# TYPE threechains_executed_total counter\nthreechains_executed_total 9\n"),
            HasSubstr("# TYPE threechains_links gauge\nthreechains_links 2\n"),
            HasSubstr("threechains_load_seconds 0.0025"), HasSubstr("threechains_code_sent_bytes_total 7\n"),
            HasSubstr("threechains_uptime_seconds 1.5\n")));
}

TEST(Families, skip_a_number_that_the_table_does_not_have) {
  EXPECT_THAT(page("stat mood 3\nstat executed 1\n"), AllOf(Not(HasSubstr("mood")), HasSubstr("executed_total 1\n")));
}

TEST(Families, have_failures_by_reason) {
  EXPECT_THAT(page("failure denied 3\nfailure timeout 18446744073709551615\n"),
              AllOf(HasSubstr("# TYPE threechains_failures_by_reason_total counter\n"),
                    HasSubstr("threechains_failures_by_reason_total{reason=\"denied\"} 3\n"),
                    HasSubstr("threechains_failures_by_reason_total{reason=\"timeout\"} 1.844674407370955")));
}

TEST(Families, have_times_as_histograms_whose_classes_add_up) {
  const auto text = page("time load 3000000000,1,2,0,0,0,0,0,0,0,0,0,0,0,4\n");
  const std::string name = "threechains_load_duration_seconds";
  EXPECT_THAT(text, AllOf(HasSubstr("# TYPE " + name + " histogram\n"), HasSubstr(name + "_count 7\n"),
                          HasSubstr(name + "_sum 3\n"), HasSubstr(name + "_bucket{le=\"+Inf\"} 7\n")));
  EXPECT_EQ(lines_with(text, name + "_bucket\\{"), command::Times::classes);
  EXPECT_EQ(lines_with(text, name + "_bucket\\{le=\"2.5.*e-07\"\\} 1\n"), 1u) << text;
  EXPECT_EQ(lines_with(text, name + "_bucket\\{le=\"(1e-06|9.99.*e-07)\"\\} 3\n"), 1u) << text;
  EXPECT_EQ(lines_with(text, name + "_bucket\\{le=\"4.19.*\"\\} 3\n"), 1u) << text;
}

TEST(Families, have_ifuncs_by_name_and_add_up_those_of_one_name) {
  const std::string run = "1000000000,0,0,0,0,0,0,0,0,0,0,0,1,0,0", latency = "2000000000,0,0,0,0,0,0,0,0,0,0,0,0,1,0";
  const auto text = page("ifunc 5 1 " + run + " " + latency + " sum\nifunc 2 1 " + run + " " + latency +
                         " sum\nifunc 1 0 " + nothing + " " + nothing + " a \"quoted\\ name\n");
  EXPECT_THAT(text, AllOf(HasSubstr("threechains_ifunc_calls_total{ifunc=\"sum\"} 7\n"),
                          HasSubstr("threechains_ifunc_failures_total{ifunc=\"sum\"} 2\n"),
                          HasSubstr("threechains_ifunc_run_seconds_sum{ifunc=\"sum\"} 2\n"),
                          HasSubstr("threechains_ifunc_run_seconds_count{ifunc=\"sum\"} 2\n"),
                          HasSubstr("threechains_ifunc_latency_seconds_sum{ifunc=\"sum\"} 4\n"),
                          HasSubstr("threechains_ifunc_calls_total{ifunc=\"a \\\"quoted\\\\ name\"} 1\n")));
}

TEST(Families, have_at_most_101_values_of_ifunc_and_lose_no_call) {
  for (const bool has_other : {false, true}) {
    std::string lines = has_other ? "ifunc 1000 0 " + std::string(nothing) + " " + nothing + " other\n" : "";
    for (int i = 0; i < 300; ++i)
      lines += "ifunc 1 0 " + std::string(nothing) + " " + nothing + " f" + std::to_string(i) + "\n";
    const auto text = page(lines);
    EXPECT_EQ(lines_with(text, "threechains_ifunc_calls_total\\{"), most_ifuncs);
    EXPECT_THAT(text,
                HasSubstr("threechains_ifunc_calls_total{ifunc=\"other\"} " + std::to_string(has_other ? 1200 : 200)));
  }
}

TEST(Families, have_sums_of_connections_by_transport_and_no_label_of_a_peer) {
  const auto text = page("link tls 7 100 200 5 client x\nlink tls 1 1 2 0 client y\nlink shm 3 10 20 0 z\n");
  EXPECT_THAT(
      text, AllOf(HasSubstr("threechains_connections{transport=\"tls\"} 2\n"),
                  HasSubstr("threechains_connections{transport=\"shm\"} 1\n"),
                  HasSubstr("threechains_connections_calls{transport=\"tls\"} 8\n"),
                  HasSubstr("threechains_connections_received_bytes{transport=\"tls\"} 101\n"),
                  HasSubstr("threechains_connections_sent_bytes{transport=\"tls\"} 202\n"),
                  HasSubstr("threechains_connections_waiting_bytes{transport=\"tls\"} 5\n"), Not(HasSubstr("client"))));
}

TEST(Families, are_each_there_once_and_none_without_a_metric) {
  const auto text = page("uptime-ns 1\nstat executed 1\n");
  EXPECT_EQ(lines_with(text, "# TYPE "), 2u) << text;
}

TEST(Families, of_the_process_have_the_names_that_dashboards_know) {
  Families families;
  add_process(families, process_start_time());
  const auto text = text_of(families);
  for (const auto* name : {"process_cpu_seconds_total", "process_resident_memory_bytes", "process_virtual_memory_bytes",
                           "process_open_fds", "process_max_fds", "process_start_time_seconds"}) {
    const auto at = text.find(std::string("\n") + name + " ");
    ASSERT_NE(at, text.npos) << name << "\n" << text;
    EXPECT_GT(std::strtod(text.c_str() + at + 2 + std::strlen(name), nullptr), 0) << name;
  }
}

TEST(Families, of_the_process_have_the_time_at_which_it_began) {
  const auto now = static_cast<double>(std::time(nullptr));
  EXPECT_LE(process_start_time(), now + 1);
  EXPECT_GT(process_start_time(), now - 3600);
}

}  // namespace
}  // namespace tc::metrics
