// SPDX-License-Identifier: Apache-2.0
#include "base/result.h"

#include <gtest/gtest.h>

namespace tc {
namespace {

Result<int> half(int value) {
  if (value % 2 != 0) return fail(TC_ERR_INVALID, "{} is odd", value);
  return value / 2;
}

Result<int> quarter(int value) {
  TC_ASSIGN(const int once, half(value));
  return half(once);
}

TEST(Result, an_error_is_passed_on_with_its_words) {
  EXPECT_EQ(quarter(8), 2);
  ASSERT_FALSE(quarter(6));
  EXPECT_EQ(quarter(6).error().code, TC_ERR_INVALID);
  EXPECT_EQ(quarter(6).error().message, "3 is odd");
}

TEST(Result, context_goes_in_front) {
  const Status status = context("loading tsi", Error{TC_ERR_NO_SLICE, "no slice for riscv64"});
  EXPECT_EQ(status.error().message, "loading tsi: no slice for riscv64");
  EXPECT_EQ(status.error().code, TC_ERR_NO_SLICE);
}

TEST(Result, a_status_from_the_wire_that_nobody_knows_is_an_internal_error) {
  EXPECT_EQ(status_from_wire(TC_ERR_TIMEOUT), TC_ERR_TIMEOUT);
  EXPECT_EQ(status_from_wire(4711), TC_ERR_INTERNAL);
  EXPECT_EQ(status_name(TC_ERR_DENIED), "denied by policy");
}

}  // namespace
}  // namespace tc
