// SPDX-License-Identifier: Apache-2.0
//
// X-RDMA: code that goes on from node to node by itself, and its answer that goes straight home.
#include "node/testing/node_test_kit.h"
#include "node/testing/raw_peer.h"

namespace tc::node::test {
namespace {

std::shared_ptr<Future> call_travel(Node& client, Link& link, uint32_t hops) {
  return test::call(client, link, *travel(client, hops));
}

TEST(Travel, an_ifunc_forwards_itself_to_nodes_that_never_saw_it_and_answers_the_first_sender) {
  Cluster cluster(2);
  auto client = cluster.net.make(99);
  cluster.start();
  const auto answer = call_travel(*client, *test::connect(*client, "n0"), 5);
  ASSERT_EQ(answer->status, TC_OK) << answer->message;
  const auto result = result_of(*answer);
  ASSERT_EQ(result.visited, 6u);
  for (uint32_t i = 0; i < 6; ++i) EXPECT_EQ(result.nodes[i], i % 2);
}

TEST(Travel, a_ring_of_nodes_works_like_a_pair) {
  Cluster cluster(4);
  auto client = cluster.net.make(99);
  cluster.start();
  auto* link = test::connect(*client, "n2");
  for (int lap = 0; lap < 3; ++lap) {
    const auto answer = call_travel(*client, *link, 8);
    ASSERT_EQ(answer->status, TC_OK) << answer->message;
    EXPECT_EQ(result_of(*answer).visited, 9u);
    EXPECT_EQ(result_of(*answer).nodes[8], 2u);
  }
}

TEST(Travel, answers_find_each_of_several_askers_whose_travellers_go_by_the_same_nodes) {
  Cluster cluster(4);
  std::vector<std::unique_ptr<Node>> clients;
  for (uint32_t i = 0; i < 3; ++i) clients.push_back(cluster.net.make(90 + i));
  cluster.start();
  std::vector<Link*> links;
  for (uint32_t i = 0; i < 3; ++i) links.push_back(test::connect(*clients[i], "n" + std::to_string(i)));
  const auto ask = [&](size_t i, uint32_t hops) {
    if (testing::Test::HasFailure()) return;
    EXPECT_EQ(call_travel(*clients[i], *links[i], hops)->status, TC_OK);
  };
  for (int round = 0; round < 6; ++round)
    for (size_t i = 0; i < 3; ++i)
      for (int again = 0; again <= round % 3; ++again) ask(i, 17);
  std::vector<std::jthread> askers;  // and all at once
  for (size_t i = 0; i < 3; ++i)
    askers.emplace_back([&, i] {
      for (int k = 0; k < 20; ++k) ask(i, 40);
    });
}

TEST(Travel, it_goes_on_through_a_node_that_died_and_came_back) {
  Cluster cluster(3);
  auto client = cluster.net.make(99);
  cluster.start();
  auto* link = test::connect(*client, "n0");
  for (int lap = 0; lap < 4; ++lap) ASSERT_EQ(call_travel(*client, *link, 9)->status, TC_OK);
  cluster.stop();
  const auto config = cluster.nodes[2]->config();
  cluster.nodes[2].reset();
  // A call that goes there before they know of it would rightly fail.
  for (const auto id : {0u, 1u}) {
    const auto knows = [&] {
      bool linked = false;
      cluster.nodes[id]->links().each([&](Link& to) { linked |= to.is_ready() && to.peer().node_id == 2; });
      return !linked;
    };
    ASSERT_TRUE(cluster.nodes[id]->poll_until(Deadline::after_ms(5000), knows));
  }
  cluster.nodes[2] = cluster.net.make(2, [&](Config& fresh) { fresh.cluster = config.cluster; });
  cluster.start();
  for (int lap = 0; lap < 4; ++lap) {
    const auto answer = call_travel(*client, *link, 9);
    ASSERT_EQ(answer->status, TC_OK) << answer->message;
    EXPECT_EQ(result_of(*answer).visited, 10u);
  }
  // An answer may be on its way before the node has counted the call that sent it.
  cluster.stop();
  const auto executed = [&] { return cluster.nodes[2]->stat("executed").value(); };
  EXPECT_TRUE(cluster.nodes[2]->poll_until(Deadline::after_ms(5000), [&] { return executed() == 12; })) << executed();
}

TEST(Travel, code_that_takes_the_memory_of_code_that_was_evicted_goes_on_as_itself) {
  Cluster cluster(2);
  auto client = cluster.net.make(99, [](Config& config) { config.hops = 6; });
  cluster.start();
  auto* link = test::connect(*client, "n0");
  const auto bundle = load_bundle("travel");
  // The node where the hops run out says whose they were.
  const auto who_stopped = [&](const Bundle& code) {
    return test::call(*client, *link, *travel(*client, code, 100))->message;
  };
  for (int i = 0; i < 3; ++i) ASSERT_THAT(who_stopped(bundle), testing::HasSubstr("ifunc 'travel' failed"));
  for (int i = 0; i < 20; ++i) {
    const auto other = renamed(bundle, "wander" + std::to_string(i));
    cluster.running[0].reset();
    cluster.nodes[0]->store().evict(i == 0 ? bundle.id() : renamed(bundle, "wander" + std::to_string(i - 1)).id());
    cluster.running[0] = std::make_unique<Background>(*cluster.nodes[0]);
    for (int k = 0; k < 3; ++k)
      ASSERT_THAT(who_stopped(other), testing::HasSubstr("ifunc 'wander" + std::to_string(i) + "' failed"));
  }
}

TEST(Travel, an_ifunc_may_forward_itself_to_its_own_node) {
  Cluster cluster(1);
  auto client = cluster.net.make(99);
  cluster.start();
  const auto answer = call_travel(*client, *test::connect(*client, "n0"), 3);
  ASSERT_EQ(answer->status, TC_OK) << answer->message;
  EXPECT_EQ(result_of(*answer).visited, 4u);
}

TEST(Travel, calls_of_a_node_to_itself_count_as_messages_that_wait) {
  constexpr size_t messages = sizeof(test::Travel);
  for (const size_t memory : {messages, 16 * messages}) {
    Cluster cluster(1, [&](Config& config) { config.message_memory = memory; });
    auto client = cluster.net.make(99);
    cluster.start();
    const auto answer = call_travel(*client, *test::connect(*client, "n0"), 20);
    cluster.stop();
    auto& node = *cluster.nodes[0];
    if (memory == messages) {
      EXPECT_EQ(answer->status, TC_ERR_IFUNC) << answer->message;
      EXPECT_EQ(answer->code, TC_ERR_LIMIT);
    } else {
      EXPECT_EQ(answer->status, TC_OK) << answer->message;
    }
    // A call on another thread may not have returned from its answer.
    EXPECT_TRUE(run_until({&node}, [&] { return node.buffers().budget().used() == 0; }));
  }
}

TEST(Travel, a_forward_loop_ends_at_the_hop_limit_and_the_sender_is_told) {
  Cluster cluster(2);
  auto client = cluster.net.make(99, [](Config& config) { config.hops = 10; });
  cluster.start();
  const auto answer = call_travel(*client, *test::connect(*client, "n0"), 1000);
  EXPECT_EQ(answer->status, TC_ERR_IFUNC);
  EXPECT_EQ(answer->code, TC_ERR_LIMIT);
}

TEST(Travel, a_sender_that_listens_nowhere_is_told_at_once_that_no_answer_could_find_it) {
  Cluster cluster(2);
  auto client = cluster.net.make(99, [](Config& config) { config.listen = ""; });
  cluster.start();
  const auto answer = call_travel(*client, *test::connect(*client, "n0"), 3);
  EXPECT_EQ(answer->status, TC_ERR_IFUNC);
  EXPECT_EQ(answer->code, TC_ERR_DISCONNECTED);
}

TEST(Travel, an_ifunc_injects_another_one_by_name_into_other_nodes) {
  Cluster cluster(2);
  unsigned char text[16] = {};
  cluster.nodes[1]->expose("text", text, sizeof text);
  ASSERT_TRUE(cluster.nodes[0]->register_bundle(load_bundle("append")));
  auto client = cluster.net.make(99);
  cluster.start();
  const auto answer = test::call(*client, *test::connect(*client, "n0"), *test::message(*client, "spread", "z"));
  ASSERT_EQ(answer->status, TC_OK) << answer->message;
  auto* link = test::connect(*client, "n1");
  for (int i = 0; i < 100 && test::call(*client, *link, *test::message(*client, "echo", ""))->status == TC_OK; ++i) {
  }
  cluster.stop();
  EXPECT_EQ(std::string(reinterpret_cast<char*>(text) + 1, text[0]), "z");
}

std::shared_ptr<Future> choose(Node& client, std::string_view what) {
  return test::call(client, *test::connect(client, "n0"), *test::message(client, "choose", what));
}

TEST(Travel, an_ifunc_goes_on_as_another_one_that_it_chose_and_that_no_node_has_seen) {
  Cluster cluster(4);
  auto client = cluster.net.make(99);
  cluster.start();
  using namespace std::string_view_literals;
  const auto answer = choose(*client, "2 echo\0words of mine"sv);
  ASSERT_EQ(answer->status, TC_OK) << answer->message;
  EXPECT_EQ(as_text(answer->bytes), "words of mine");
  EXPECT_EQ(answer->node_id, 3u);
  const auto refusal = choose(*client, "0 refuse\0"sv);
  EXPECT_EQ(refusal->status, TC_ERR_IFUNC);
  EXPECT_THAT(refusal->message, testing::HasSubstr("node 1 (test1): ifunc 'refuse' failed"));
}

TEST(Travel, a_bundled_ifunc_is_what_the_ifunc_was_built_with_whatever_else_has_its_name) {
  Cluster cluster(2);
  // Here "echo" is other code: the one that always refuses, under that name.
  ASSERT_TRUE(cluster.nodes[0]->register_bundle(renamed(load_bundle("refuse"), "echo")));
  auto client = cluster.net.make(99);
  cluster.start();
  using namespace std::string_view_literals;
  const auto answer = choose(*client, "0 echo\0x"sv);
  ASSERT_EQ(answer->status, TC_OK) << answer->message;
  EXPECT_EQ(as_text(answer->bytes), "x");
}

TEST(Travel, an_ifunc_that_chooses_what_nobody_knows_hears_of_it) {
  Cluster cluster(2);
  auto client = cluster.net.make(99);
  cluster.start();
  using namespace std::string_view_literals;
  const auto answer = choose(*client, "0 nothing\0"sv);
  EXPECT_EQ(answer->status, TC_ERR_IFUNC);
  EXPECT_EQ(answer->code, TC_ERR_NOT_FOUND);
}

TEST(Travel, injecting_what_nobody_knows_is_an_error_of_the_ifunc) {
  Cluster cluster(2);
  auto client = cluster.net.make(99);
  cluster.start();
  const auto answer = test::call(*client, *test::connect(*client, "n0"), *test::message(*client, "spread", "z"));
  EXPECT_EQ(answer->status, TC_ERR_IFUNC);
  EXPECT_EQ(answer->code, TC_ERR_NOT_FOUND);
}

// ---- Calls on their way through a node when the way ends: whoever waits at its start is told

class Loss : public testing::Test {
 protected:
  std::unique_ptr<Node> member(uint32_t id) {
    return net.make(id, [](Config& config) { config.cluster = {"n0", "n1"}; });
  }
  Link* connect(Node& from, Node& to, const std::string& address) {
    const Background running(to);
    return test::connect(from, address);
  }

  Net net;
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
  auto second = std::make_unique<RawPeer>(net.network);
  second->listen("n1");
  const auto future = client->call(*link, *travel(*client, 1), 60'000, Deadline::after_ms(20'000)).value();
  ASSERT_TRUE(run_until({first.get(), client.get()}, [&] { return first->executed() == 1; }));
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
  ASSERT_TRUE(run_until({first.get(), client.get()}, [&] { return first->executed() == calls; }));
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
  ASSERT_TRUE(run_until({first.get(), client.get()}, [&] { return first->executed() == 6001; }));
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
}  // namespace tc::node::test
