// SPDX-License-Identifier: Apache-2.0
//
// Handles of ifuncs: one for each content, however often it is registered.
#include <gtest/gtest.h>

#include "capi/handles.h"
#include "capi/testing/node.h"

namespace tc::capi {
namespace {

using test::Node;
using test::Served;

tc_ifunc_t* registered(const Node& node, const char* name) {
  tc_ifunc_t* ifunc = nullptr;
  EXPECT_EQ(tc_ifunc_register(node.handle, name, &ifunc), TC_OK) << tc_error_message();
  return ifunc;
}

TEST(Ifuncs, that_are_registered_twice_have_one_handle_until_both_are_freed) {
  Served target;
  Node source;
  auto* const endpoint = source.connect(target);
  auto* const first = registered(source, "echo");
  auto* const second = registered(source, "echo");
  EXPECT_EQ(first, second);
  EXPECT_STREQ(tc_ifunc_name(first), "echo");
  tc_ifunc_free(first);
  tc_message_t* message = nullptr;
  tc_future_t* future = nullptr;
  ASSERT_EQ(tc_message_create(second, "hello", 5, &message), TC_OK) << tc_error_message();
  ASSERT_EQ(tc_endpoint_call(endpoint, message, 10'000, &future), TC_OK) << tc_error_message();
  EXPECT_EQ(tc_future_wait(future, 10'000), TC_OK);
  EXPECT_EQ(tc_future_status(future), TC_OK);
  tc_future_free(future);
  tc_message_free(message);
  tc_ifunc_free(second);
}

TEST(Ifuncs, that_are_freed_as_often_as_they_were_registered_take_no_memory) {
  Node node;
  auto* const echo = registered(node, "echo");
  auto* const refuse = registered(node, "refuse");
  EXPECT_NE(echo, refuse);
  EXPECT_EQ(registered(node, "echo"), echo);
  EXPECT_EQ(node.handle->ifuncs.size(), 2u);
  tc_ifunc_free(refuse);
  EXPECT_EQ(node.handle->ifuncs.size(), 1u);
  tc_ifunc_free(echo);
  EXPECT_EQ(node.handle->ifuncs.size(), 1u);
  tc_ifunc_free(echo);
  EXPECT_TRUE(node.handle->ifuncs.empty());
  tc_ifunc_free(registered(node, "echo"));
  EXPECT_TRUE(node.handle->ifuncs.empty());
}

// A message keeps the code that it was made of.
TEST(Ifuncs, may_be_freed_before_their_messages_are_sent) {
  Served target;
  Node source;
  auto* const endpoint = source.connect(target);
  auto* const echo = registered(source, "echo");
  tc_message_t* message = nullptr;
  ASSERT_EQ(tc_message_create(echo, "hello", 5, &message), TC_OK) << tc_error_message();
  tc_ifunc_free(echo);
  tc_future_t* future = nullptr;
  ASSERT_EQ(tc_endpoint_call(endpoint, message, 10'000, &future), TC_OK) << tc_error_message();
  EXPECT_EQ(tc_future_wait(future, 10'000), TC_OK);
  EXPECT_EQ(tc_future_status(future), TC_OK);
  tc_future_free(future);
  tc_message_free(message);
}

}  // namespace
}  // namespace tc::capi
