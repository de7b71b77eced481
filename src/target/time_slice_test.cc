// SPDX-License-Identifier: Apache-2.0
//
// What a turn tells the statistics of code: how many calls ran, and how long some of them took.
#include "target/time_slice.h"

#include <gtest/gtest.h>

namespace tc::target {
namespace {

class Sampling : public ::testing::Test {
 protected:
  static constexpr uint64_t turns = 6400;

  Sampling() {
    for (auto* const code : {&first, &second}) code->calls_a_look = 512;
    first.use = &use_of_first;
    second.use = &use_of_second;
  }
  bool run_turn(Code& code) {
    slice.begin();
    (void)slice.before(code);
    slice.after(code, 1);
    return slice.is_over();
  }
  static void expect_some(const CodeUse& use, uint64_t calls) {
    EXPECT_GE(use.run.count(), calls / 100);
    EXPECT_LE(use.run.count(), calls / 30);
    EXPECT_EQ(use.latency, use.run);
  }

  TimeSlice slice;
  CodeUse use_of_first, use_of_second;
  Code first, second;
};

TEST_F(Sampling, each_call_is_counted_and_some_are_measured_where_each_turn_has_one) {
  for (uint64_t i = 0; i < turns; ++i) EXPECT_FALSE(run_turn(first));
  expect_some(use_of_first, turns);
  EXPECT_EQ(first.calls, turns);
  first.fold_calls();
  EXPECT_EQ(first.calls, 0u);
  EXPECT_EQ(use_of_first.calls, turns);
}

TEST_F(Sampling, those_that_have_their_turns_in_order_are_all_measured) {
  for (uint64_t i = 0; i < turns; ++i) EXPECT_FALSE(run_turn(i % 2 == 0 ? first : second));
  EXPECT_GE(use_of_first.run.count(), turns / 400);
  EXPECT_GE(use_of_second.run.count(), turns / 400);
  EXPECT_LE(use_of_first.run.count() + use_of_second.run.count(), turns / 30);
}

TEST_F(Sampling, nothing_is_learned_from_a_sample) {
  for (uint64_t i = 0; i < turns; ++i) run_turn(first);
  EXPECT_EQ(first.calls_a_look, 512);
  EXPECT_FALSE(first.was_long);
}

TEST_F(Sampling, code_that_was_freed_in_its_turn_is_not_measured) {
  for (uint64_t i = 0; i < turns; ++i) {
    slice.begin();
    (void)slice.before(first);
    slice.after(first, 1);
    slice.forget(first);
    EXPECT_FALSE(slice.is_over());
  }
  EXPECT_EQ(use_of_first.run.count(), 0u);
}

TEST_F(Sampling, code_of_which_nobody_wants_to_know_runs_as_ever) {
  first.use = nullptr;
  for (uint64_t i = 0; i < turns; ++i) EXPECT_FALSE(run_turn(first));
  first.fold_calls();
  EXPECT_EQ(first.calls, turns);
}

TEST_F(Sampling, each_look_at_the_clock_counts_for_all_calls_since_the_last_one) {
  first.calls_a_look = 0;  // not known: measured one by one
  slice.begin();
  (void)slice.before(first);
  slice.after(first, 1);
  (void)slice.is_over();
  EXPECT_EQ(use_of_first.run.count(), 1u);
}

// The clock would cost more than the calls.
TEST_F(Sampling, short_calls_behind_one_that_was_measured_are_not_measured_themselves) {
  slice.begin();
  EXPECT_FALSE(slice.is_over());  // the turn that is sampled
  first.calls_a_look = 0;
  slice.begin();
  (void)slice.before(first);
  slice.after(first, 1);
  (void)slice.is_over();
  ASSERT_EQ(use_of_first.run.count(), 1u);
  for (int i = 0; i < 10; ++i) {
    (void)slice.before(second);
    slice.after(second, 1);
    (void)slice.is_over();
  }
  EXPECT_EQ(use_of_second.run.count(), 0u);
}

TEST_F(Sampling, before_says_how_many_calls_may_run_until_the_next_look) {
  slice.begin();
  EXPECT_FALSE(slice.is_over());
  slice.begin();
  EXPECT_EQ(slice.before(first), 512u);
  slice.after(first, 500);
  EXPECT_EQ(slice.before(first), 12u);
  first.calls_a_look = 0;
  EXPECT_EQ(slice.before(first), 1u) << "at least one";
}

}  // namespace
}  // namespace tc::target
