// SPDX-License-Identifier: Apache-2.0
//
// A node drains in the middle of streams of calls: each call ran once, or its caller is told that it was refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/testing/run_until.h"
#include "capi/testing/node.h"

namespace tc::capi {
namespace {

using test::Node;
using ::testing::HasSubstr;

struct Case {
  const char* transport;
  const char* threads;
};

class DrainOver : public testing::TestWithParam<Case> {
 protected:
  test::Options options() const {
    auto options = test::options_for(GetParam().transport);
    options.emplace_back("threads", GetParam().threads);
    return options;
  }
  void poll() {
    EXPECT_EQ(tc_node_poll(client.handle, nullptr), TC_OK);
    EXPECT_EQ(tc_node_poll(server.handle, nullptr), TC_OK);
  }
  bool until(const std::function<bool()>& done) {
    return tc::test::run_until(done, [this] { poll(); }, 60'000);
  }
  // While a thread of its own drives the server.
  tc_endpoint_t* connect() {
    EXPECT_EQ(tc_node_start_progress(server.handle), TC_OK);
    auto* const endpoint = client.connect(server);
    EXPECT_EQ(tc_node_stop_progress(server.handle), TC_OK);
    return endpoint;
  }

  static tc_future_t* call(tc_endpoint_t* endpoint, tc_ifunc_t* ifunc, const std::string& payload) {
    tc_message_t* message = nullptr;
    tc_future_t* future = nullptr;
    EXPECT_EQ(tc_message_create(ifunc, payload.data(), payload.size(), &message), TC_OK) << tc_error_message();
    EXPECT_EQ(tc_endpoint_call(endpoint, message, 0, &future), TC_OK) << tc_error_message();
    tc_message_free(message);
    return future;
  }

  Node server{options()}, client{test::options_for(GetParam().transport)};
};

TEST_P(DrainOver, every_call_of_a_stream_ran_and_was_answered_or_was_refused) {
  constexpr int calls = 2000, at_once = 64;
  auto* const endpoint = connect();
  tc_ifunc_t* ifunc = nullptr;
  ASSERT_EQ(tc_ifunc_register(client.handle, "echo", &ifunc), TC_OK) << tc_error_message();
  std::vector<tc_future_t*> futures;
  size_t ended = 0;
  const auto count_ended = [&] {
    while (ended < futures.size() && tc_future_ready(futures[ended])) ++ended;
    return ended;
  };
  for (int i = 0; i < calls; ++i) {
    ASSERT_TRUE(until([&] { return futures.size() - count_ended() < at_once; }));
    futures.push_back(call(endpoint, ifunc, std::to_string(i)));
    if (i == calls / 2) (void)tc_node_drain(server.handle);
  }
  ASSERT_TRUE(until([&] { return count_ended() == futures.size(); }));
  uint64_t answered = 0;
  for (size_t i = 0; i < futures.size(); ++i) {
    const auto status = tc_future_status(futures[i]);
    if (status == TC_OK) {
      ++answered;
      size_t size = 0;
      const void* const bytes = tc_future_bytes(futures[i], &size);
      EXPECT_EQ(std::string(static_cast<const char*>(bytes), size), std::to_string(i));
    } else {
      ASSERT_EQ(status, TC_ERR_CLOSED) << tc_future_error(futures[i]);
      EXPECT_THAT(tc_future_error(futures[i]), HasSubstr("is draining: it ends, and takes no more calls"));
    }
    tc_future_free(futures[i]);
  }
  EXPECT_GE(answered, static_cast<uint64_t>(calls / 2 - at_once));
  EXPECT_LT(answered, static_cast<uint64_t>(calls));
  EXPECT_EQ(test::number_of(server, "executed"), answered);
  EXPECT_TRUE(until([&] { return tc_node_drain(server.handle) == TC_OK; }));
}

INSTANTIATE_TEST_SUITE_P(Transports, DrainOver,
                         testing::Values(Case{"shm", "1"}, Case{"shm", "4"}, Case{"tcp", "1"}, Case{"tcp", "4"},
                                         Case{"tls", "1"}, Case{"tls", "4"}),
                         [](const auto& one) {
                           return std::string(one.param.transport) + "_with_" + one.param.threads + "_threads";
                         });

}  // namespace
}  // namespace tc::capi
