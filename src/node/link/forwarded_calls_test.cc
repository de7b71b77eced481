// SPDX-License-Identifier: Apache-2.0
#include "node/link/forwarded_calls.h"

#include "node/testing/node_test_kit.h"

namespace tc::node::test {
namespace {

constexpr uint64_t caller = 7;
constexpr uint32_t soon_ms = 60'000;

TEST(ForwardedCalls, each_is_found_once_by_its_token_and_its_caller) {
  ForwardedCalls calls;
  ASSERT_TRUE(calls.add({5, caller}, true, soon_ms));
  EXPECT_FALSE(calls.take({5, caller + 1}));
  EXPECT_FALSE(calls.take({6, caller}));
  EXPECT_TRUE(calls.take({5, caller}));
  EXPECT_FALSE(calls.take({5, caller}));
  EXPECT_FALSE(calls.take({0, caller}));
}

TEST(ForwardedCalls, one_that_comes_by_its_link_again_is_found_again) {
  ForwardedCalls calls;
  ASSERT_TRUE(calls.add({5, caller}, true, soon_ms));
  ASSERT_TRUE(calls.add({5, caller}, true, soon_ms));
  EXPECT_TRUE(calls.take({5, caller}));
  EXPECT_TRUE(calls.take({5, caller}));
  EXPECT_FALSE(calls.take({5, caller}));
}

TEST(ForwardedCalls, a_slow_one_whose_answer_has_no_other_way_stays_however_many_come_after_it) {
  ForwardedCalls calls;
  ASSERT_TRUE(calls.add({1, caller}, true, soon_ms));
  for (uint64_t token = 2; token < 5 * ForwardedCalls::most; ++token) {
    ASSERT_TRUE(calls.add({token, caller}, token % 2 == 0, soon_ms));
    if (token % 2 == 0) ASSERT_TRUE(calls.take({token, caller}));
  }
  EXPECT_TRUE(calls.take({1, caller}));
}

TEST(ForwardedCalls, of_those_that_are_answered_elsewhere_the_last_are_known) {
  ForwardedCalls calls;
  constexpr uint64_t last = 5 * ForwardedCalls::most;
  for (uint64_t token = 1; token <= last; ++token) ASSERT_TRUE(calls.add({token, caller}, false, soon_ms));
  EXPECT_FALSE(calls.take({1, caller}));
  for (uint64_t token = last; token > last - ForwardedCalls::most / 2; --token)
    ASSERT_TRUE(calls.take({token, caller})) << token;
}

TEST(ForwardedCalls, too_many_that_wait_are_refused_until_their_callers_wait_no_longer) {
  ForwardedCalls calls;
  for (uint64_t token = 1; token <= ForwardedCalls::most; ++token)
    ASSERT_TRUE(calls.add({token, caller}, true, soon_ms));
  EXPECT_FALSE(calls.add({ForwardedCalls::most + 1, caller}, true, soon_ms));
  EXPECT_TRUE(calls.add({ForwardedCalls::most + 2, caller}, false, soon_ms)) << "its answer has another way";
  EXPECT_TRUE(calls.take({1, caller}));
  EXPECT_TRUE(calls.add({ForwardedCalls::most + 3, caller}, true, soon_ms));
  let_pass(std::chrono::milliseconds(soon_ms + 1));
  EXPECT_TRUE(calls.add({ForwardedCalls::most + 4, caller}, true, soon_ms));
  EXPECT_FALSE(calls.take({2, caller})) << "its caller waits no longer";
}

}  // namespace
}  // namespace tc::node::test
