// SPDX-License-Identifier: Apache-2.0
#include "base/near_table.h"

#include <gtest/gtest.h>

namespace tc {
namespace {

TEST(NearTable, rows_are_the_same_whether_they_lie_near_or_far) {
  NearTable<int, 4> table;
  for (size_t i = 0; i < 10; i += 3) table.row(i) = static_cast<int>(i) + 1;
  for (size_t i = 0; i < 10; ++i) {
    ASSERT_NE(table.find(i), nullptr) << i;
    EXPECT_EQ(*table.find(i), i % 3 == 0 ? static_cast<int>(i) + 1 : 0) << i;
  }
  EXPECT_EQ(table.find(10), nullptr);
  EXPECT_EQ(table.find(~uint32_t{0}), nullptr);
}

TEST(NearTable, each_row_is_visited_near_and_far) {
  NearTable<int, 4> table;
  table.row(1) = table.row(9) = 1;
  int rows = 0, sum = 0;
  table.each([&](int& row) {
    ++rows;
    sum += row;
  });
  EXPECT_EQ(rows, 10);
  EXPECT_EQ(sum, 2);
}

TEST(NearTable, a_cleared_table_is_as_new) {
  NearTable<int, 4> table;
  for (int round = 0; round < 2; ++round) {
    table.row(1) = table.row(7) = 5;
    table.clear();
    EXPECT_EQ(*table.find(1), 0);
    EXPECT_EQ(table.find(7), nullptr);
  }
}

}  // namespace
}  // namespace tc
