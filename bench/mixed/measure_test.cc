// SPDX-License-Identifier: Apache-2.0
#include "mixed/measure.h"

#include <gtest/gtest.h>

#include "mixed/testing/prompt_client.h"

namespace tc::bench {
namespace {

TEST(Measure, a_queue_is_sent_at_once_and_its_answers_are_timed_one_by_one) {
  PromptClient client;
  const auto times = measure_queue(client, 10);
  ASSERT_TRUE(times);
  EXPECT_EQ(client.most_in_flight(), 10u);
  EXPECT_EQ(client.count(), 10u);
  EXPECT_GT(times->first_us, 0);
  EXPECT_GT(times->largest_gap_us, 0);
  EXPECT_GE(times->last_us, times->first_us);
  EXPECT_GE(times->last_us, times->largest_gap_us);
}

TEST(Measure, small_calls_are_made_one_at_a_time_while_the_first_client_keeps_its_queue_full) {
  auto first = std::make_unique<PromptClient>(), second = std::make_unique<PromptClient>();
  const auto &queue = *first, &small = *second;
  MixedClients clients{std::move(first), std::move(second)};
  const auto us = measure_small_calls(clients, 7, 2);
  ASSERT_TRUE(us);
  EXPECT_EQ(us->size(), small.called());
  EXPECT_EQ(small.most_in_flight(), 1u);
  EXPECT_EQ(queue.most_in_flight(), 7u);
  EXPECT_GT(queue.called(), 7u);
  EXPECT_EQ(queue.in_flight(), 0u);
}

TEST(Measure, there_is_a_small_call_however_short_the_phase_is) {
  MixedClients clients{std::make_unique<PromptClient>(), std::make_unique<PromptClient>()};
  const auto us = measure_small_calls(clients, 1, 0);
  ASSERT_TRUE(us);
  EXPECT_EQ(us->size(), 1u);
}

TEST(Measure, a_call_that_failed_ends_it) {
  PromptClient client;
  client.fail_all();
  const auto times = measure_queue(client, 2);
  ASSERT_FALSE(times);
  EXPECT_EQ(times.error().code, TC_ERR_IFUNC);
}

}  // namespace
}  // namespace tc::bench
