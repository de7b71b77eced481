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

// Other work on this machine may take the core for a moment: then a wait blocks instead.
void expect_next(Next expected, Next next, const Core& core) {
  if (next != Next::block || !core.is_busy(now_ns())) EXPECT_EQ(next, expected);
}

TEST(WaitPolicy, gives_up_after_one_poll_when_its_time_had_passed_before) {
  Core core;
  auto until = WaitPolicy::until(core, Deadline::after_ms(0));
  EXPECT_EQ(until.after_empty_poll(false), Next::give_up);
  auto no_time = WaitPolicy::for_ns(core, 0);
  EXPECT_EQ(no_time.after_empty_poll(true), Next::give_up);
}

TEST(WaitPolicy, blocks_when_it_has_polled_for_long_enough_and_gives_up_at_its_deadline_alone) {
  Core core;
  auto policy = WaitPolicy::until(core, Deadline::after_ms(60'000));
  const uint64_t start = now_ns();
  EXPECT_EQ(poll_until_told(policy), Next::block);
  EXPECT_TRUE(now_ns() - start >= WaitPolicy::polling_ns || core.is_busy(start));
  EXPECT_EQ(policy.after_empty_poll(false), Next::block) << "and again, while nothing comes";
  auto shorter = WaitPolicy::for_ns(core, WaitPolicy::polling_ns / 4);
  expect_next(Next::give_up, poll_until_told(shorter), core);
}

TEST(WaitPolicy, a_time_without_end_does_not_wrap_around) {
  Core core;
  auto policy = WaitPolicy::for_ns(core, UINT64_MAX);
  EXPECT_EQ(poll_until_told(policy), Next::block);
  EXPECT_GT(policy.deadline().remaining_ns(), uint64_t{1} << 60);
}

TEST(WaitPolicy, gives_up_as_soon_as_others_wait) {
  Core core;
  std::atomic<int> others = 1;
  auto policy = WaitPolicy::until(core, Deadline::after_ms(60'000), &others);
  EXPECT_EQ(policy.after_empty_poll(true), Next::give_up);
  others = 0;
  EXPECT_EQ(poll_until_told(policy), Next::block);
}

TEST(WaitPolicy, its_time_begins_with_the_first_poll_and_not_before) {
  Core core;
  auto policy = WaitPolicy::for_ns(core, WaitPolicy::polling_ns / 2);
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
  expect_next(Next::poll, policy.after_empty_poll(false), core);
}

// Alone on its core it reads the clock with one poll in eight.
TEST(WaitPolicy, polls_that_ask_the_system_still_come_to_an_end) {
  Core core;
  auto policy = WaitPolicy::until(core, Deadline::after_ms(60'000));
  const uint64_t start = now_ns();
  EXPECT_EQ(poll_until_told(policy, true), Next::block);
  EXPECT_LT(now_ns() - start, 1'000'000'000u);
}

TEST(WaitPolicy, on_a_core_with_a_thread_that_computes_it_blocks_at_once_for_a_while) {
  Core core;
  core.note_busy(now_ns());
  auto first = WaitPolicy::until(core, Deadline::after_ms(60'000));
  EXPECT_EQ(first.after_empty_poll(false), Next::block);
  auto passed = WaitPolicy::until(core, Deadline::after_ms(0));
  EXPECT_EQ(passed.after_empty_poll(false), Next::give_up);
  EXPECT_TRUE(core.is_busy(now_ns()));
  EXPECT_FALSE(core.is_busy(now_ns() + Core::believed_ns));
}

// The scheduler may give such a yield another length, and one of many is enough.
TEST(WaitPolicy, a_yield_to_a_thread_that_computes_tells_that_the_core_is_busy) {
  cpu_set_t before, one;
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  CPU_ZERO(&one);
  CPU_SET(sched_getcpu(), &one);
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  std::atomic<bool> ends = false;
  std::thread computes([&] {  // on this core: it has its maker's
    while (!ends) {
    }
  });
  Core core;
  for (const auto until = Deadline::after_ms(20'000); !core.is_busy(now_ns()) && !until.passed();) {
    auto policy = WaitPolicy::until(core, Deadline::after_ms(60'000));
    (void)poll_until_told(policy);
  }
  EXPECT_TRUE(core.is_busy(now_ns()));
  ends = true;
  computes.join();
  ASSERT_EQ(sched_setaffinity(0, sizeof before, &before), 0);
}

}  // namespace
}  // namespace tc::transport
