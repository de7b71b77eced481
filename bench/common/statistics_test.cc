// SPDX-License-Identifier: Apache-2.0
#include "common/statistics.h"

#include <gtest/gtest.h>

namespace tc::bench {
namespace {

TEST(Statistics, the_median_does_not_mind_one_wild_value) { EXPECT_DOUBLE_EQ(summarize({3, 1, 2, 1000, 4}).median, 3); }

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
