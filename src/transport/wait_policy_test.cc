// SPDX-License-Identifier: Apache-2.0
#include "transport/wait_policy.h"

#include <gtest/gtest.h>

#include <thread>

namespace tc::transport {
namespace {

using Next = WaitPolicy::Next;

// Polls until it is told something else.
Next poll_until_told(WaitPolicy& policy, bool asks_system = false) {
  for (;;)
    if (const auto next = policy.after_empty_poll(asks_system); next != Next::poll) return next;
}

TEST(WaitPolicy, gives_up_after_one_poll_when_its_time_had_passed_before) {
  auto until = WaitPolicy::until(Deadline::after_ms(0));
  EXPECT_EQ(until.after_empty_poll(false), Next::give_up);
  auto no_time = WaitPolicy::for_ns(0);
  EXPECT_EQ(no_time.after_empty_poll(true), Next::give_up);
}

TEST(WaitPolicy, blocks_when_it_has_polled_for_long_enough_and_gives_up_at_its_deadline_alone) {
  auto policy = WaitPolicy::until(Deadline::after_ms(60'000));
  const uint64_t start = now_ns();
  EXPECT_EQ(poll_until_told(policy), Next::block);
  EXPECT_GE(now_ns() - start, WaitPolicy::polling_ns);
  EXPECT_EQ(policy.after_empty_poll(false), Next::block) << "and again, while nothing comes";
  auto shorter = WaitPolicy::for_ns(WaitPolicy::polling_ns / 4);
  EXPECT_EQ(poll_until_told(shorter), Next::give_up);
}

TEST(WaitPolicy, a_time_without_end_does_not_wrap_around) {
  auto policy = WaitPolicy::for_ns(UINT64_MAX);
  EXPECT_EQ(poll_until_told(policy), Next::block);
  EXPECT_GT(policy.deadline().remaining_ns(), uint64_t{1} << 60);
}

TEST(WaitPolicy, gives_up_as_soon_as_others_wait) {
  std::atomic<int> others = 1;
  auto policy = WaitPolicy::until(Deadline::after_ms(60'000), &others);
  EXPECT_EQ(policy.after_empty_poll(true), Next::give_up);
  others = 0;
  EXPECT_EQ(poll_until_told(policy), Next::block);
}

TEST(WaitPolicy, its_time_begins_with_the_first_poll_and_not_before) {
  auto policy = WaitPolicy::for_ns(WaitPolicy::polling_ns / 2);
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
  EXPECT_EQ(policy.after_empty_poll(false), Next::poll);
}

// Alone on its core it reads the clock with one poll in eight.
TEST(WaitPolicy, polls_that_ask_the_system_still_come_to_an_end) {
  auto policy = WaitPolicy::until(Deadline::after_ms(60'000));
  const uint64_t start = now_ns();
  EXPECT_EQ(poll_until_told(policy, true), Next::block);
  EXPECT_LT(now_ns() - start, 1'000'000'000u);
}

}  // namespace
}  // namespace tc::transport
