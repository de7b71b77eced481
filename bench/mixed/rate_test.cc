// SPDX-License-Identifier: Apache-2.0
#include "mixed/rate.h"

#include <gtest/gtest.h>

#include <array>

#include "base/clock.h"
#include "mixed/testing/prompt_client.h"

namespace tc::bench {
namespace {

TEST(Rate, all_calls_of_all_clients_are_counted_and_no_client_has_more_than_its_window_in_flight) {
  PromptClient one, other;
  const std::array<MixedClient*, 2> clients{&one, &other};
  const auto started = now_ns();
  const auto rate = measure_rate(clients, 5, 20);
  const auto most_s = static_cast<double>(now_ns() - started) / 1e9;
  ASSERT_TRUE(rate);
  for (const auto* const client : {&one, &other}) {
    EXPECT_EQ(client->most_in_flight(), 5u);
    EXPECT_EQ(client->in_flight(), 0u);
  }
  const auto calls = static_cast<double>(one.count() + other.count());
  EXPECT_GE(rate->calls_per_s, calls / most_s);
  EXPECT_LE(rate->calls_per_s, calls / 0.020);
}

TEST(Rate, a_call_that_failed_ends_it) {
  PromptClient client;
  client.fail_all();
  const std::array<MixedClient*, 1> clients{&client};
  EXPECT_FALSE(measure_rate(clients, 5, 1000));
}

TEST(Rate, each_thread_works_at_least_once) {
  const BurnWork little{1, 0};
  EXPECT_GT(rate_without_calls(little, 2, 0), 0);
}

}  // namespace
}  // namespace tc::bench
