// SPDX-License-Identifier: Apache-2.0
//
// Endpoints as programs see them, and when the link of each ends.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "capi/testing/node.h"

namespace tc::capi {
namespace {

using test::Node;
using test::Served;

uint64_t number_of(const Node& node, const char* name) {
  uint64_t value = 0;
  EXPECT_EQ(tc_node_stat(node.handle, name, &value), TC_OK) << tc_error_message();
  return value;
}

// Of nodes that drive themselves.
template <class Done>
bool wait_for(Done&& done) {
  for (const auto deadline = Deadline::after_ms(20'000); !deadline.passed();) {
    if (done()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return done();
}

// A transport, by the name that its links have.
test::Options options_for(std::string_view transport) {
  if (transport == "shm") return {{"transport", "shm"}};
  if (transport == "tls") return {{"transport", "tcp"}};
  return {{"transport", "tcp"}, {"trust-network", "127.0.0.0/8"}};
}

class Endpoints : public testing::TestWithParam<const char*> {
 protected:
  const test::Options options = options_for(GetParam());
};

TEST_P(Endpoints, of_the_peer_go_on_when_ours_is_closed_and_all_that_they_accept_runs) {
  Served first(options), second(options);
  auto* const to_second = first.connect(second);
  EXPECT_STREQ(tc_endpoint_transport(to_second), GetParam());
  auto* const to_first = second.connect(first);
  ASSERT_EQ(number_of(first, "links"), 1u) << "one connection serves both ways";
  tc_ifunc_t* echo = nullptr;
  tc_message_t* message = nullptr;
  ASSERT_EQ(tc_ifunc_register(second.handle, "echo", &echo), TC_OK);
  ASSERT_EQ(tc_message_create(echo, "x", 1, &message), TC_OK);
  std::atomic<uint64_t> accepted = 0;
  std::atomic<bool> stop = false;
  std::thread sender([&] {
    while (!stop)
      if (tc_endpoint_send(to_first, message) == TC_OK) ++accepted;
  });
  EXPECT_TRUE(wait_for([&] { return accepted > 1000; }));
  EXPECT_EQ(tc_endpoint_free(to_second, 5000), TC_OK) << tc_error_message();
  const auto before = accepted.load();
  EXPECT_TRUE(wait_for([&] { return accepted > before + 1000; }));
  stop = true;
  sender.join();
  EXPECT_EQ(tc_endpoint_status(to_first), TC_OK) << tc_error_message();
  EXPECT_EQ(tc_endpoint_flush(to_first, 20'000), TC_OK) << tc_error_message();
  EXPECT_EQ(number_of(first, "executed"), accepted);
  EXPECT_EQ(tc_endpoint_free(to_first, 5000), TC_OK) << tc_error_message();
  EXPECT_TRUE(wait_for([&] { return number_of(first, "links") + number_of(second, "links") == 0; }));
  tc_message_free(message);
}

TEST_P(Endpoints, of_a_client_that_lives_on_end_their_link_at_the_server) {
  Served server(options);
  Node client(options);
  auto* const endpoint = client.connect(server);
  auto* const future = client.call(endpoint, "echo");
  EXPECT_EQ(tc_future_wait(future, 10'000), TC_OK);
  tc_future_free(future);
  EXPECT_EQ(tc_endpoint_free(endpoint, 5000), TC_OK) << tc_error_message();
  EXPECT_TRUE(wait_for([&] { return number_of(server, "links") == 0; })) << "though the client does nothing more";
  EXPECT_TRUE(wait_for([&] {
    tc_node_poll(client.handle, nullptr);
    return number_of(client, "links") == 0;
  }));
}

// With a progress thread any thread may wait, and the others go on meanwhile.
class Waiting : public testing::Test {
 protected:
  Waiting() {
    EXPECT_EQ(tc_node_start_progress(mute.handle), TC_OK);
    to_mute = source.connect(mute);
    EXPECT_EQ(tc_node_stop_progress(mute.handle), TC_OK);
  }
  // While a thread waits in `wait`, this one calls; then the mute node speaks, and the wait ends well.
  void others_go_on_during(const std::function<tc_status_t()>& wait) {
    std::atomic<bool> begins = false, has_ended = false;
    tc_status_t status = TC_ERR_INTERNAL;
    std::thread waiting([&] {
      begins = true;
      status = wait();
      has_ended = true;
    });
    while (!begins) std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));  // so that it waits, most likely
    for (int i = 0; i < calls; ++i) {
      auto* const future = source.call(to_target, "echo");
      EXPECT_EQ(tc_future_wait(future, 10'000), TC_OK);
      EXPECT_EQ(tc_future_status(future), TC_OK);
      tc_future_free(future);
    }
    EXPECT_FALSE(has_ended);
    EXPECT_EQ(tc_node_start_progress(mute.handle), TC_OK);
    waiting.join();
    EXPECT_EQ(status, TC_OK);
  }

  static constexpr int calls = 5;
  const test::Options options = options_for("shm");
  Served target{options};
  Node mute{options};  // whom nobody drives
  Served source{options};
  tc_endpoint_t* to_target = source.connect(target);
  tc_endpoint_t* to_mute = nullptr;
};

TEST_F(Waiting, for_a_connection_keeps_no_other_thread_waiting) {
  tc_endpoint_t* another = nullptr;
  others_go_on_during([&] { return tc_node_connect(source.handle, tc_node_address(mute.handle), 60'000, &another); });
  EXPECT_NE(another, nullptr);
}

TEST_F(Waiting, for_a_flush_keeps_no_other_thread_waiting) {
  tc_future_free(source.call(to_mute, "echo"));
  others_go_on_during([&] { return tc_endpoint_flush(to_mute, 60'000); });
}

TEST_F(Waiting, for_the_end_of_an_endpoint_keeps_no_other_thread_waiting) {
  others_go_on_during([&] { return tc_endpoint_free(to_mute, 60'000); });
}

TEST_F(Waiting, for_room_keeps_no_other_thread_waiting) {
  tc_ifunc_t* echo = nullptr;
  tc_message_t* message = nullptr;
  const std::string payload(100'000, 'x');
  ASSERT_EQ(tc_ifunc_register(source.handle, "echo", &echo), TC_OK);
  ASSERT_EQ(tc_message_create(echo, payload.data(), payload.size(), &message), TC_OK);
  tc_endpoint_set_timeout(to_mute, 0);
  while (tc_endpoint_send(to_mute, message) == TC_OK) {
  }
  tc_endpoint_set_timeout(to_mute, 60'000);
  others_go_on_during([&] { return tc_endpoint_send(to_mute, message); });
  tc_message_free(message);
}

// Rings alone need no look at the system in each poll. What waits for room in one does.
TEST(Answers, that_waited_for_room_leave_with_the_next_poll) {
  const test::Options options{{"transport", "shm"}, {"ring-bytes", "64K"}};
  Node target(options), source(options);
  EXPECT_EQ(tc_node_start_progress(target.handle), TC_OK);
  auto* const endpoint = source.connect(target);
  EXPECT_EQ(tc_node_stop_progress(target.handle), TC_OK);
  std::vector<tc_future_t*> futures;
  for (int i = 0; i < 64; ++i) {
    futures.push_back(source.call(endpoint, "echo", std::string(8000, 'x'), 0));
    tc_node_poll(target.handle, nullptr);
  }
  const auto poll = [](const Node& node, int times) {
    for (int i = 0; i < times; ++i) tc_node_poll(node.handle, nullptr);
  };
  const auto ready = [&] { return std::ranges::count_if(futures, [](auto* f) { return tc_future_ready(f) != 0; }); };
  for (int i = 0; i < 4; ++i) {
    // There is no room, and for some milliseconds nothing else to do.
    for (const auto deadline = Deadline::after_ms(10); !deadline.passed();) poll(target, 100);
    poll(source, 100);
    const auto before = ready();
    ASSERT_LT(before, 64);
    poll(target, 1);
    poll(source, 100);
    EXPECT_GT(ready(), before);
  }
  for (int i = 0; i < 10'000 && ready() != 64; ++i) {
    poll(target, 1);
    poll(source, 1);
  }
  for (auto* const future : futures) {
    EXPECT_EQ(tc_future_status(future), TC_OK) << tc_error_message();
    tc_future_free(future);
  }
}

INSTANTIATE_TEST_SUITE_P(Over, Endpoints, testing::Values("shm", "tcp", "tls"),
                         [](const auto& transport) { return std::string(transport.param); });

}  // namespace
}  // namespace tc::capi
