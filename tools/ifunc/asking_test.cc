// SPDX-License-Identifier: Apache-2.0
#include "ifunc/asking.h"

#include <gtest/gtest.h>

namespace tc::command {
namespace {

TEST(ExitCodes, tell_a_node_that_is_not_there_from_one_that_refuses_and_one_that_is_not_well) {
  EXPECT_EQ(exit_code_of(TC_OK), 0);
  EXPECT_EQ(exit_code_of(TC_ERR_TIMEOUT), 1);
  EXPECT_EQ(exit_code_of(TC_ERR_VERSION), 1);
  EXPECT_EQ(exit_code_of(TC_ERR_DISCONNECTED), 69);
  EXPECT_EQ(exit_code_of(TC_ERR_NOT_FOUND), 69);
  EXPECT_EQ(exit_code_of(TC_ERR_DENIED), 77);
}

TEST(ExitCodes, of_an_error_are_never_that_of_success) {
  for (int status = TC_OK + 1; status <= TC_ERR_CRASHED; ++status)
    EXPECT_NE(exit_code_of(static_cast<tc_status_t>(status)), 0) << status;
}

}  // namespace
}  // namespace tc::command
