// SPDX-License-Identifier: Apache-2.0
#include "ifunc/told.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tc::command {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

TEST(Told, is_read_from_the_lines_of_a_node) {
  const auto told = parse_told(
      "name a node\nversion 1.2.3\nid 7\nuptime-ns 5\nrunning tsi\ndraining 1\nstat executed 9\nstat code-bytes "
      "18446744073709551615\n");
  ASSERT_TRUE(told) << told.error().message;
  EXPECT_EQ(told->name, "a node");
  EXPECT_EQ(told->version, "1.2.3");
  EXPECT_EQ(told->id, 7u);
  EXPECT_EQ(told->uptime_ns, 5u);
  EXPECT_EQ(told->running, "tsi");
  EXPECT_TRUE(told->is_draining);
  EXPECT_THAT(told->statistics, ElementsAre(Pair("executed", 9u), Pair("code-bytes", UINT64_MAX)));
}

TEST(Told, has_nothing_where_a_line_is_missing_and_skips_lines_of_later_versions) {
  const auto told = parse_told("name n\nmood good\nuptime-ns 5\n");
  ASSERT_TRUE(told) << told.error().message;
  EXPECT_FALSE(told->id);
  EXPECT_TRUE(told->running.empty());
  EXPECT_FALSE(told->is_draining);
  EXPECT_TRUE(told->statistics.empty());
}

TEST(Told, without_a_number_where_one_belongs_is_refused_with_the_line) {
  for (const std::string line : {"stat executed", "stat executed many", "stat", "id", "id -1", "uptime-ns 1.5",
                                 "stat executed 18446744073709551616"}) {
    const auto told = parse_told(line + "\n");
    ASSERT_FALSE(told) << line;
    EXPECT_EQ(told.error().message, "what the node says of itself has the line '" + line + "' without a number");
  }
}

TEST(Told, has_the_failures_ifuncs_and_links_of_a_node) {
  const auto told = parse_told(
      "failure denied 3\ntime load 900,0,1,0,0,0,0,0,0,0,0,0,0,0,0\n"
      "ifunc 7 2 10,7,0,0,0,0,0,0,0,0,0,0,0,0,0 20,0,7,0,0,0,0,0,0,0,0,0,0,0,0 grep words\n"
      "link tls 7 100 200 5 client x\n");
  ASSERT_TRUE(told) << told.error().message;
  EXPECT_THAT(told->failures, ElementsAre(Pair("denied", 3u)));
  ASSERT_EQ(told->times.size(), 1u);
  EXPECT_EQ(told->times[0].second.sum_ns, 900u);
  EXPECT_EQ(told->times[0].second.counts[1], 1u);
  ASSERT_EQ(told->ifuncs.size(), 1u);
  const auto& ifunc = told->ifuncs[0];
  EXPECT_EQ(ifunc.name, "grep words");
  EXPECT_EQ(ifunc.calls, 7u);
  EXPECT_EQ(ifunc.failures, 2u);
  EXPECT_EQ(ifunc.run.counts[0], 7u);
  EXPECT_EQ(ifunc.latency.count(), 7u);
  ASSERT_EQ(told->links.size(), 1u);
  const auto& link = told->links[0];
  EXPECT_EQ(link.peer, "client x");
  EXPECT_EQ(link.transport, "tls");
  EXPECT_EQ(link.received_bytes, 100u);
  EXPECT_EQ(link.sent_bytes, 200u);
  EXPECT_EQ(link.waiting_bytes, 5u);
}

TEST(Told, with_times_of_too_few_or_too_many_classes_is_refused) {
  for (const std::string times : {"5", "5,", "5,0,0,0,0,0,0,0,0,0,0,0,0,0", "5,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0", ""})
    EXPECT_FALSE(parse_told("time load " + times + "\n")) << times;
}

}  // namespace
}  // namespace tc::command
