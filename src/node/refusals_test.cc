// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "node/rates.h"

namespace tc::node {
namespace {

constexpr uint64_t second = 1'000'000'000;

TEST(Refusals, ten_a_second_are_said_and_the_rest_are_counted) {
  Refusals refusals;
  uint64_t now = 5 * second;
  for (uint32_t i = 0; i < Refusals::lines_a_second; ++i) EXPECT_TRUE(refusals.record(now += 1000));
  for (int i = 0; i < 500; ++i) EXPECT_FALSE(refusals.record(now += 1000));
  EXPECT_EQ(refusals.take_unsaid(now), 0u) << "the second is not over";
  EXPECT_EQ(refusals.take_unsaid(now + second), 500u);
  EXPECT_EQ(refusals.take_unsaid(now + second), 0u) << "once";
  EXPECT_TRUE(refusals.record(now + second));
}

}  // namespace
}  // namespace tc::node
