// SPDX-License-Identifier: Apache-2.0
//
// Calls on their way through a node when the way ends: whoever waits at its start is told.
#include "node/testing/node_test_kit.h"
#include "node/testing/raw_peer.h"

namespace tc::node {
namespace {

using test::Background;
using test::Travel;

std::unique_ptr<source::Message> travel(Node& client, uint32_t hops) {
  Travel payload;
  payload.hops_to_go = hops;
  return test::message(client, "travel", {reinterpret_cast<const char*>(&payload), sizeof payload});
}

class Loss : public testing::Test {
 protected:
  std::unique_ptr<Node> member(uint32_t id) {
    return net.make(id, [](Config& config) { config.cluster = {"n0", "n1"}; });
  }
  bool run_until(std::initializer_list<Node*> nodes, const std::function<bool()>& done, uint64_t ms = 60'000) {
    return tc::test::run_until(
        done,
        [&] {
          for (Node* node : nodes) {
            node->poll();
            node->expire();
          }
        },
        ms);
  }
  static bool all_ready(const std::vector<std::shared_ptr<Future>>& futures) {
    return std::ranges::all_of(futures, [](const auto& future) { return future->ready.load(); });
  }
  Link* connect(Node& from, Node& to, const std::string& address) {
    const Background running(to);
    return test::connect(from, address);
  }

  test::Net net;
};

TEST_F(Loss, a_call_that_is_forwarded_to_a_node_that_is_not_there_fails_at_its_first_sender) {
  auto first = member(0);
  auto client = net.make(99);
  auto* link = connect(*client, *first, "n0");
  const auto future = client->call(*link, *travel(*client, 1), 60'000, Deadline::after_ms(20'000)).value();
  ASSERT_TRUE(run_until({first.get(), client.get()}, [&] { return future->ready.load(); }));
  EXPECT_EQ(future->status, TC_ERR_DISCONNECTED);
  EXPECT_THAT(future->message, testing::AllOf(testing::HasSubstr("node 0 (test0)"), testing::HasSubstr("n1")));
}

TEST_F(Loss, calls_that_wait_for_a_greeting_that_never_comes_fail_at_their_first_sender) {
  auto first = member(0);
  auto client = net.make(99);
  auto* link = connect(*client, *first, "n0");
  auto second = std::make_unique<test::RawPeer>(net.network);
  second->listen("n1");
  const auto future = client->call(*link, *travel(*client, 1), 60'000, Deadline::after_ms(20'000)).value();
  ASSERT_TRUE(run_until({first.get(), client.get()}, [&] { return first->executor().executed() == 1; }));
  EXPECT_FALSE(future->ready.load());
  second.reset();
  ASSERT_TRUE(run_until({first.get(), client.get()}, [&] { return future->ready.load(); }));
  EXPECT_EQ(future->status, TC_ERR_DISCONNECTED);
  EXPECT_THAT(future->message, testing::AllOf(testing::HasSubstr("node 0 (test0)"), testing::HasSubstr("n1")));
}

// More than the window lets out at once: what waits for the greeting must not be lost to it.
TEST_F(Loss, calls_that_wait_for_a_greeting_all_go_on_once_it_has_come) {
  auto first = member(0);
  auto second = member(1);
  auto client = net.make(99);
  auto* link = connect(*client, *first, "n0");
  const auto message = travel(*client, 1);
  std::vector<std::shared_ptr<Future>> futures;
  constexpr int calls = 4000;
  for (int i = 0; i < calls; ++i) {
    auto future = client->call(*link, *message, 60'000, Deadline::after_ms(0));
    if (future) {
      futures.push_back(std::move(*future));
    } else {
      first->poll();
      client->poll();
      --i;
    }
  }
  ASSERT_TRUE(run_until({first.get(), client.get()}, [&] { return first->executor().executed() == calls; }));
  ASSERT_TRUE(run_until({first.get(), second.get(), client.get()}, [&] { return all_ready(futures); }));
  for (const auto& future : futures) ASSERT_EQ(future->status, TC_OK) << future->message;
}

TEST_F(Loss, forwarded_calls_that_were_not_on_the_wire_yet_fail_at_their_first_sender) {
  auto first = member(0);
  auto client = net.make(99);
  auto* link = connect(*client, *first, "n0");
  auto second = member(1);
  const auto message = travel(*client, 1);
  const auto opening = client->call(*link, *message, 60'000, Deadline::after_ms(20'000)).value();
  ASSERT_TRUE(run_until({first.get(), second.get(), client.get()}, [&] { return opening->ready.load(); }));
  ASSERT_EQ(opening->status, TC_OK) << opening->message;
  // The second node stands still from here on: the window to it fills, and the rest waits at the first.
  std::vector<std::shared_ptr<Future>> futures;
  while (futures.size() < 6000) {
    auto future = client->call(*link, *message, 60'000, Deadline::after_ms(0));
    if (future) futures.push_back(std::move(*future));
    first->poll();
    client->poll();
  }
  ASSERT_TRUE(run_until({first.get(), client.get()}, [&] { return first->executor().executed() == 6001; }));
  second.reset();
  ASSERT_TRUE(run_until({first.get(), client.get()}, [&] { return all_ready(futures); }));
  // Those that waited at the first node are answered by it; those that were on the wire are missed (peer_failures.h).
  for (const auto& future : futures) {
    EXPECT_EQ(future->status, TC_ERR_DISCONNECTED) << future->message;
    EXPECT_THAT(future->message, testing::HasSubstr("node 1 (test1)"));
  }
}

// An answer to a client that has not greeted yet must not open a connection for each.
TEST_F(Loss, answers_along_a_return_address_share_one_connection) {
  auto first = member(0);
  auto second = member(1);
  auto client = net.make(99);
  auto* link = connect(*client, *first, "n0");
  const auto message = travel(*client, 1);
  std::vector<std::shared_ptr<Future>> futures;
  for (int i = 0; i < 50; ++i)
    futures.push_back(client->call(*link, *message, 60'000, Deadline::after_ms(20'000)).value());
  ASSERT_TRUE(run_until({first.get(), second.get(), client.get()}, [&] { return all_ready(futures); }));
  for (const auto& future : futures) ASSERT_EQ(future->status, TC_OK) << future->message;
  EXPECT_EQ(client->stat("links"), 2u);
}

TEST_F(Loss, an_answer_larger_than_its_reader_takes_becomes_an_error_and_the_link_stays) {
  auto target = net.make(1);
  auto client = net.make(2, [](Config& config) { config.max_message = 64 * 1024; });
  auto* link = connect(*client, *target, "n1");
  const auto large =
      client
          ->call(*link, *test::message(*client, "echo", std::string(200'000, 'x')), 60'000, Deadline::after_ms(20'000))
          .value();
  ASSERT_TRUE(run_until({target.get(), client.get()}, [&] { return large->ready.load(); }));
  EXPECT_EQ(large->status, TC_ERR_TOO_LARGE);
  EXPECT_THAT(large->message, testing::AllOf(testing::HasSubstr("200000"), testing::HasSubstr("65536")));
  EXPECT_EQ(link->state(), Link::State::ready);
}

}  // namespace
}  // namespace tc::node
