// SPDX-License-Identifier: Apache-2.0
//
// A node in an event loop of the program's own: tc_node_fd() and tc_node_arm(), with poll(2).
#include <gtest/gtest.h>
#include <poll.h>

#include <atomic>
#include <thread>

#include "base/clock.h"
#include "capi/testing/node.h"

namespace tc::capi {
namespace {

using test::Node;
using test::Served;

// A program's loop, until `done`. How often it had to wait, and for how long it was told to at most.
struct Loop {
  explicit Loop(const Node& node) : node(node.handle) { EXPECT_EQ(tc_node_fd(this->node, &fd), TC_OK); }

  template <class Done>
  bool run_until(Done&& done, uint64_t limit_ms = 10'000) {
    for (const auto deadline = Deadline::after_ms(limit_ms); !deadline.passed();) {
      tc_node_poll(node, nullptr);
      if (done()) return true;
      const auto armed = tc_node_arm(node, &timeout_ms);
      if (armed == TC_ERR_BUSY) continue;
      EXPECT_EQ(armed, TC_OK) << tc_error_message();
      pollfd wanted{fd, POLLIN, 0};
      // A wake that is lost must not look like one that came late.
      const int longest = static_cast<int>(limit_ms);
      ::poll(&wanted, 1, timeout_ms < 0 || timeout_ms > longest ? longest : timeout_ms);
      ++waits;
    }
    return done();
  }

  tc_node_t* node;
  int fd = -1, timeout_ms = 0, waits = 0;
};

// A transport, by the name that its links have: TCP is plain only on networks that are trusted.
test::Options options_for(std::string_view transport) {
  if (transport == "shm") return {{"transport", "shm"}};
  if (transport == "tls") return {{"transport", "tcp"}};
  return {{"transport", "tcp"}, {"trust-network", "127.0.0.0/8"}};
}

class EventLoop : public testing::TestWithParam<const char*> {
 protected:
  const test::Options options = options_for(GetParam());
};

TEST_P(EventLoop, brings_the_answers_of_calls) {
  Served target(options);
  Node source(options);
  auto* const endpoint = source.connect(target);
  EXPECT_STREQ(tc_endpoint_transport(endpoint), GetParam());
  Loop loop(source);
  for (int i = 0; i < 200; ++i) {
    auto* const future = source.call(endpoint, "echo", "hello");
    const auto begin = now_ns();
    ASSERT_TRUE(loop.run_until([&] { return tc_future_ready(future) != 0; }));
    EXPECT_EQ(tc_future_status(future), TC_OK);
    EXPECT_LT(now_ns() - begin, 5'000'000'000u) << "the descriptor said nothing; a time-out brought the answer";
    tc_future_free(future);
  }
}

TEST_P(EventLoop, runs_what_peers_send_while_the_program_is_asleep) {
  Node target(options);
  std::atomic<bool> stop = false;
  uint64_t executed = 0;
  Loop loop(target);
  std::thread server([&] {
    loop.run_until([&] { return stop.load(); }, 60'000);
    tc_node_stat(target.handle, "executed", &executed);
  });
  {
    Node source(options);
    auto* const endpoint = source.connect(target);
    for (int i = 0; i < 100; ++i) {
      auto* const future = source.call(endpoint, "echo");
      if (i % 10 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(3));  // so that it sleeps indeed
      EXPECT_EQ(tc_future_wait(future, 10'000), TC_OK);
      EXPECT_EQ(tc_future_status(future), TC_OK);
      tc_future_free(future);
    }
  }
  stop = true;
  tc_node_wake(target.handle);
  server.join();
  EXPECT_EQ(executed, 100u);
  EXPECT_GT(loop.waits, 0);
}

TEST_P(EventLoop, an_idle_node_waits_for_its_descriptor_alone) {
  Served target(options);
  Node source(options);
  (void)source.connect(target);
  Loop loop(source);
  EXPECT_FALSE(loop.run_until([] { return false; }, 1500));
  EXPECT_LT(loop.waits, 20);
}

TEST_P(EventLoop, deadlines_of_calls_are_in_the_time_to_wait) {
  Node mute(options);
  Node source(options);
  ASSERT_EQ(tc_node_start_progress(mute.handle), TC_OK);
  auto* const endpoint = source.connect(mute);
  ASSERT_EQ(tc_node_stop_progress(mute.handle), TC_OK);
  Loop loop(source);
  auto* const future = source.call(endpoint, "echo", "", 30);
  const auto begin = now_ns();
  ASSERT_TRUE(loop.run_until([&] { return tc_future_ready(future) != 0; }));
  EXPECT_GE(now_ns() - begin, 25'000'000u);
  EXPECT_LE(loop.timeout_ms, 50);
  EXPECT_GE(loop.timeout_ms, 0);
  EXPECT_EQ(tc_future_status(future), TC_ERR_TIMEOUT);
  tc_future_free(future);
}

INSTANTIATE_TEST_SUITE_P(Over, EventLoop, testing::Values("shm", "tcp", "tls"),
                         [](const auto& transport) { return std::string(transport.param); });

TEST(EventLoop, a_wake_makes_the_descriptor_readable) {
  Node node;
  int fd = -1, timeout_ms = 0;
  ASSERT_EQ(tc_node_fd(node.handle, &fd), TC_OK);
  while (tc_node_arm(node.handle, &timeout_ms) == TC_ERR_BUSY) tc_node_poll(node.handle, nullptr);
  EXPECT_EQ(timeout_ms, -1) << "nothing is due";
  pollfd wanted{fd, POLLIN, 0};
  EXPECT_EQ(::poll(&wanted, 1, 0), 0);
  tc_node_wake(node.handle);
  EXPECT_EQ(::poll(&wanted, 1, 5000), 1);
  EXPECT_EQ(tc_node_arm(node.handle, &timeout_ms), TC_ERR_BUSY) << "the wake is something that happened";
  EXPECT_EQ(tc_node_arm(node.handle, &timeout_ms), TC_OK);
  EXPECT_EQ(::poll(&wanted, 1, 0), 0);
}

TEST(EventLoop, a_node_with_a_progress_thread_cannot_be_armed) {
  Served node;
  int timeout_ms = 0;
  EXPECT_EQ(tc_node_arm(node.handle, &timeout_ms), TC_ERR_INVALID);
}

}  // namespace
}  // namespace tc::capi
