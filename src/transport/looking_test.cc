// SPDX-License-Identifier: Apache-2.0
#include "transport/looking.h"

#include <gtest/gtest.h>

#include <thread>

namespace tc::transport {
namespace {

// Goes on until it is not told to look again.
Seen look_until_told(Looking& looking, bool takes_turns = false) {
  auto seen = looking.go_on(takes_turns);
  while (seen == Seen::nothing) seen = looking.go_on(takes_turns);
  return seen;
}

TEST(Looking, is_over_after_one_look_when_its_time_had_passed_before) {
  auto looking = Looking::until(Deadline::after_ms(0));
  EXPECT_EQ(looking.go_on(false), Seen::over);
  auto without_time = Looking::for_ns(0);
  EXPECT_EQ(without_time.go_on(true), Seen::over);
}

TEST(Looking, sleeps_when_it_looked_for_long_enough_and_gives_up_at_its_deadline_alone) {
  const auto start = now_ns();
  auto looking = Looking::until(Deadline::after_ms(60'000));
  EXPECT_EQ(look_until_told(looking), Seen::too_long);
  EXPECT_GE(now_ns() - start, Looking::before_sleep_ns);
  EXPECT_EQ(looking.go_on(false), Seen::too_long) << "and again, while nothing comes";
  auto shorter = Looking::for_ns(Looking::before_sleep_ns / 4);
  EXPECT_EQ(look_until_told(shorter), Seen::over);
}

TEST(Looking, a_time_without_end_does_not_wrap_around) {
  auto looking = Looking::for_ns(UINT64_MAX);
  EXPECT_EQ(look_until_told(looking), Seen::too_long);
  EXPECT_GT(looking.deadline().remaining_ns(), uint64_t{1} << 60);
}

TEST(Looking, is_over_as_soon_as_others_wait) {
  std::atomic<int> others = 1;
  auto looking = Looking::until(Deadline::after_ms(60'000), &others);
  EXPECT_EQ(looking.go_on(true), Seen::over);
  others = 0;
  EXPECT_EQ(look_until_told(looking), Seen::too_long);
}

TEST(Looking, sleeps_after_a_turn_that_took_too_long_but_not_because_of_the_time_before_its_first_look) {
  auto looking = Looking::until(Deadline::after_ms(60'000));
  std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_EQ(looking.go_on(true), Seen::nothing);
  const auto first = looking.now();
  while (now_ns() - first <= Looking::longest_turn_ns) continue;
  EXPECT_EQ(looking.go_on(true), Seen::too_long);
}

TEST(Looking, naps_up_to_what_was_allowed_and_never_beyond_its_deadline) {
  auto looking = Looking::until(Deadline::after_ms(60'000));
  EXPECT_FALSE(looking.may_nap()) << "nobody allowed it";
  const auto now = now_ns();
  looking.let_nap(now + 60'000'000'000, now + 70'000'000'000);
  EXPECT_EQ(looking.go_on(false), Seen::nothing);
  EXPECT_TRUE(looking.may_nap());
  EXPECT_EQ(looking.nap_until().at_ns(), looking.deadline().at_ns());
  looking.let_nap(now + 60'000'000'000, now + 1);
  EXPECT_EQ(looking.nap_until().at_ns(), now + 1);
  looking.let_nap(now, now + 1);
  EXPECT_FALSE(looking.may_nap()) << "it is later than that";
}

}  // namespace
}  // namespace tc::transport
