// SPDX-License-Identifier: Apache-2.0
#include "ifunc/asking.h"

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

TEST(ExitCodes, tell_a_node_that_is_not_there_from_one_that_refuses_and_one_that_is_not_well) {
  EXPECT_EQ(exit_code_of(TC_OK), 0);
  EXPECT_EQ(exit_code_of(TC_ERR_TIMEOUT), 1);
  EXPECT_EQ(exit_code_of(TC_ERR_VERSION), 1);
  EXPECT_EQ(exit_code_of(TC_ERR_DISCONNECTED), 69);
  EXPECT_EQ(exit_code_of(TC_ERR_NOT_FOUND), 69);
  EXPECT_EQ(exit_code_of(TC_ERR_DENIED), 77);
}

TEST(ExitCodes, of_an_error_are_never_that_of_success) {
  for (int status = TC_OK + 1; status <= TC_ERR_CRASHED; ++status)
    EXPECT_NE(exit_code_of(static_cast<tc_status_t>(status)), 0) << status;
}

}  // namespace
}  // namespace tc::command
