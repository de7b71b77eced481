// SPDX-License-Identifier: Apache-2.0
#include "common/report.h"

#include <gtest/gtest.h>

namespace tc::bench {
namespace {

TEST(Report, rows_stand_below_their_titles) {
  Table table("Two of them.\n\n", {{"name", -6}, {"ns", 5}, {"", 9, 2}});
  table.row({"one", "1.0", "[1, 2]"});
  table.text("between\n");
  table.row({"two", "20"});
  EXPECT_EQ(table.take(),
            "Two of them.\n\n"
            "name     ns\n"
            "one     1.0     [1, 2]\n"
            "between\n"
            "two      20\n");
}

TEST(Report, figures_have_their_quartiles_beside_them) {
  const Summary value{1530, 1500, 1610};
  EXPECT_EQ(quartiles(value, "{:.2f}", 1000), "[1.50, 1.61]");
  EXPECT_EQ(with_quartiles(value, "{:.4g}"), "1530 [1500, 1610]");
}

TEST(Report, json_has_the_median_and_the_spread) {
  Json root;
  put(root, "ns", {2, 1, 4});
  EXPECT_EQ(root.dump(), R"({"ns":2.0,"ns_spread":[1.0,4.0]})");
  EXPECT_EQ(text_of(Json{{"a", 1}}), "{\n  \"a\": 1\n}\n");
}

}  // namespace
namespace {

TEST(Statistics, the_median_does_not_mind_one_wild_value) { EXPECT_DOUBLE_EQ(summarize({3, 1, 2, 1000, 4}).median, 3); }

TEST(Statistics, a_share_of_the_values_lies_below_a_quantile) {
  EXPECT_DOUBLE_EQ(quantile({5, 1, 4, 2, 3}, 0), 1);
  EXPECT_DOUBLE_EQ(quantile({5, 1, 4, 2, 3}, 0.75), 4);
  EXPECT_DOUBLE_EQ(quantile({5, 1, 4, 2, 3}, 1), 5);
  EXPECT_DOUBLE_EQ(quantile({7}, 0.99), 7);
}

TEST(Statistics, an_even_number_of_values_has_its_median_between_the_middle_two) {
  EXPECT_DOUBLE_EQ(summarize({4, 1, 3, 2}).median, 2.5);
}

TEST(Statistics, spread_is_told_by_the_quartiles) {
  const auto s = summarize({1, 2, 3, 4, 5});
  EXPECT_DOUBLE_EQ(s.low, 2);
  EXPECT_DOUBLE_EQ(s.high, 4);
}

TEST(Statistics, nothing_measured_is_zero) { EXPECT_DOUBLE_EQ(summarize({}).median, 0); }

}  // namespace
}  // namespace tc::bench
