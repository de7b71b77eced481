// SPDX-License-Identifier: Apache-2.0
#include "base/closest.h"

#include <gtest/gtest.h>

namespace tc {
namespace {

TEST(Closest, a_word_is_guessed_when_it_is_near_or_the_beginning) {
  const std::vector<std::string> known{"--sign", "--size", "--timeout"};
  EXPECT_EQ(closest("--singn", known), "--sign");
  EXPECT_EQ(closest("--isgn", known), "--sign");
  EXPECT_EQ(closest("--time", known), "--timeout");
  EXPECT_EQ(closest("--output", known), "");
  EXPECT_EQ(closest("", known), "");
  EXPECT_EQ(closest("-x", {}), "");
}

TEST(Closest, what_there_is_not_is_said_with_the_guess) {
  EXPECT_EQ(there_is_no("option", "lisen", {"listen", "trust"}), "there is no option 'lisen'; did you mean 'listen'?");
  EXPECT_EQ(there_is_no("option", "colour", {"listen", "trust"}), "there is no option 'colour'");
}

}  // namespace
}  // namespace tc
