// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <vector>

#include "05-pointer-chase/chase.h"

namespace {

std::vector<uint64_t> table_of(uint64_t entries, uint64_t seed) {
  std::vector<uint64_t> table(entries);
  chase_fill(table.data(), entries, seed);
  return table;
}

TEST(ChaseTable, IsOneCycleThroughAllEntries) {
  for (const uint64_t entries : {2, 3, 16, 1000, 65'536}) {
    const auto table = table_of(entries, 42);
    uint64_t address = 0, steps = 0;
    do {
      address = table[address];
      ++steps;
      ASSERT_LT(address, entries);
    } while (address != 0 && steps <= entries);
    EXPECT_EQ(steps, entries) << "entries until it closes";
  }
}

// Every server of a run, on whatever machine and built by whatever compiler, must draw the same table.
TEST(ChaseTable, IsTheSameEverywhere) {
  EXPECT_EQ(table_of(8, 42), (std::vector<uint64_t>{2, 3, 4, 6, 7, 1, 0, 5}));
  uint64_t state = 42;
  EXPECT_EQ(chase_random(&state), 0xbdd732262feb6e95u) << "splitmix64's published first number for 42";
}

TEST(ChaseTable, DependsOnItsSeed) { EXPECT_NE(table_of(64, 1), table_of(64, 2)); }

TEST(ChaseWalk, FollowsTheEntries) {
  const std::vector<uint64_t> table{2, 0, 3, 1};  // 0 2 3 1 0 ...
  EXPECT_EQ(chase_walk(table.data(), 0, 0), 0u);
  EXPECT_EQ(chase_walk(table.data(), 0, 1), 2u);
  EXPECT_EQ(chase_walk(table.data(), 0, 3), 1u);
  EXPECT_EQ(chase_walk(table.data(), 0, 4), 0u) << "round the cycle";
  EXPECT_EQ(chase_walk(table.data(), 3, 6), 0u);
}

TEST(ChaseStart, IsInTheTableAndDiffersFromChaseToChase) {
  std::vector<bool> seen(1000);
  size_t distinct = 0;
  for (uint64_t i = 0; i < 1000; ++i) {
    const auto start = chase_start(i, 1000, 42);
    ASSERT_LT(start, 1000u);
    if (!seen[start]) ++distinct;
    seen[start] = true;
  }
  EXPECT_GT(distinct, 500u);
}

}  // namespace
