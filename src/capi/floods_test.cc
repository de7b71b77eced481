// SPDX-License-Identifier: Apache-2.0
//
// Two nodes flood each other with calls over real connections. The answers are large, so more bytes are on their way
// than may wait at either node. Every call must be answered.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <thread>

#include "capi/testing/node.h"

namespace tc::capi {
namespace {

using test::Node;

constexpr size_t size = 1 << 20, window = 100, calls = 150;

test::Options options_for(std::string_view transport) {
  if (transport == "tls") return {{"transport", "tcp"}};
  if (transport == "tcp") return {{"transport", "tcp"}, {"trust-network", "127.0.0.0/8"}};
  return {{"transport", transport.data()}};
}

// Keeps `window` calls on their way until all are answered. Returns how many were answered well.
size_t flood(const Node& from, tc_endpoint_t* endpoint) {
  const std::string payload(size, 'x');
  std::deque<tc_future_t*> waiting;
  size_t answered = 0;
  for (size_t sent = 0; sent < calls || !waiting.empty();) {
    if (sent < calls && waiting.size() < window) {
      waiting.push_back(from.call(endpoint, "echo", payload, 60'000));
      ++sent;
      continue;
    }
    auto* const future = waiting.front();
    waiting.pop_front();
    EXPECT_EQ(tc_future_wait(future, 60'000), TC_OK);
    EXPECT_EQ(tc_future_status(future), TC_OK) << tc_future_error(future);
    if (tc_future_status(future) == TC_OK) ++answered;
    tc_future_free(future);
    if (testing::Test::HasFailure()) break;
  }
  for (auto* const future : waiting) tc_future_free(future);
  return answered;
}

class Floods : public testing::TestWithParam<const char*> {};

TEST_P(Floods, two_nodes_that_flood_each_other_get_all_their_answers) {
  const auto options = options_for(GetParam());
  Node one(options), two(options);
  ASSERT_EQ(tc_node_start_progress(one.handle), TC_OK);
  ASSERT_EQ(tc_node_start_progress(two.handle), TC_OK);
  auto* const to_two = one.connect(two);
  auto* const to_one = two.connect(one);
  ASSERT_STREQ(tc_endpoint_transport(to_two), GetParam());
  for (auto* const endpoint : {to_two, to_one}) tc_endpoint_set_timeout(endpoint, 60'000);
  size_t by_one = 0;
  std::thread other([&] { by_one = flood(one, to_two); });
  EXPECT_EQ(flood(two, to_one), calls);
  other.join();
  EXPECT_EQ(by_one, calls);
  EXPECT_EQ(tc_endpoint_flush(to_two, 10'000), TC_OK) << tc_error_message();
  tc_endpoint_free(to_two, 1000);
  tc_endpoint_free(to_one, 1000);
}

INSTANTIATE_TEST_SUITE_P(Over, Floods, testing::Values("shm", "unix", "tcp", "tls"),
                         [](const auto& transport) { return std::string(transport.param); });

}  // namespace
}  // namespace tc::capi
