// SPDX-License-Identifier: Apache-2.0
//
// Nodes that die while calls travel: the calls that died with them fail by their name, all others end as if nothing
// had been. Everything runs on one thread, so that a test says exactly who has come how far.
#include <set>

#include "node/testing/node_test_kit.h"

namespace tc::node {
namespace {

using test::Travel;

class PeerFailures : public testing::Test {
 protected:
  static constexpr uint32_t client_id = 99;
  static constexpr uint32_t long_ms = 600'000;  // a deadline by which nothing here ends

  void make_nodes(uint32_t count) {
    for (uint32_t id = 0; id < count; ++id)
      nodes.push_back(net.make(id, [&](Config& config) {
        for (uint32_t other = 0; other < count; ++other) config.cluster.push_back("n" + std::to_string(other));
      }));
    client = net.make(client_id);
  }

  // Drives all nodes but those in `asleep` until `done`. False when that takes too long.
  bool run_until(const std::function<bool()>& done, uint64_t ms = 60'000) {
    return tc::test::run_until(
        done,
        [&] {
          for (uint32_t id = 0; id < nodes.size(); ++id)
            if (nodes[id] && !asleep.contains(id)) drive(*nodes[id]);
          drive(*client);
        },
        ms);
  }
  static void drive(Node& node) {
    node.poll();
    node.expire();
  }
  // So long, and so often that all have come as far as in that time on a machine that does nothing else.
  void run_for(uint64_t ms) {
    const auto end = Deadline::after_ms(ms);
    uint64_t rounds = 0;
    run_until([&] { return ++rounds > 20 * ms && end.passed(); });
  }

  Link* connect(uint32_t id) {
    const test::Background running(*nodes[id]);
    return test::connect(*client, "n" + std::to_string(id));
  }
  std::shared_ptr<Future> send(Link& link, uint32_t hops, uint32_t deadline_ms = long_ms) {
    Travel payload;
    payload.hops_to_go = hops;
    const std::string_view bytes(reinterpret_cast<const char*>(&payload), sizeof payload);
    return client->call(link, *test::message(*client, "travel", bytes), deadline_ms, Deadline::after_ms(20'000))
        .value();
  }
  // All links that the ring needs are there, and all nodes hold the code.
  void go_round_once(Link& link) {
    const auto future = send(link, static_cast<uint32_t>(nodes.size()));
    ASSERT_TRUE(run_until([&] { return future->ready.load(); }));
    ASSERT_EQ(future->status, TC_OK) << future->message;
  }
  uint64_t stat(const Node& node, const char* name) { return node.stat(name).value(); }
  // Puts a call to where nobody runs it: it is on its way to, or waits at, the node `at`.
  std::shared_ptr<Future> strand(Link& link, uint32_t hops, uint32_t at, uint32_t deadline_ms = long_ms) {
    asleep.insert(at);
    const auto before = stat(*nodes[0], "executed");
    auto future = send(link, hops, deadline_ms);
    EXPECT_TRUE(run_until([&] { return stat(*nodes[0], "executed") > before; }));
    run_for(20);
    EXPECT_FALSE(future->ready.load());
    return future;
  }
  void die(uint32_t id) { nodes[id].reset(); }

  test::Net net;
  std::vector<std::unique_ptr<Node>> nodes;
  std::unique_ptr<Node> client;
  std::set<uint32_t> asleep;
};

TEST_F(PeerFailures, a_call_that_was_lost_with_a_node_on_its_way_fails_by_that_nodes_name_long_before_its_deadline) {
  make_nodes(3);
  auto* link = connect(0);
  go_round_once(*link);
  const auto future = strand(*link, 2, 1);
  die(1);
  ASSERT_TRUE(run_until([&] { return future->ready.load(); }));
  EXPECT_EQ(future->status, TC_ERR_DISCONNECTED);
  EXPECT_EQ(future->node_id, 1u);
  EXPECT_THAT(future->message, testing::HasSubstr("ifunc 'travel' on node 0 (test0): node 1 (test1) died"));
}

TEST_F(PeerFailures, the_event_comes_through_nodes_that_had_no_link_to_the_failed_one) {
  make_nodes(5);
  auto* link = connect(0);
  const auto warm = send(*link, 3);  // 0, 1, 2, 3: the client knows 0 and 3, who had the last word
  ASSERT_TRUE(run_until([&] { return warm->ready.load(); }));
  const auto future = strand(*link, 3, 2);
  die(2);
  ASSERT_TRUE(run_until([&] { return future->ready.load(); }));
  EXPECT_EQ(future->status, TC_ERR_DISCONNECTED);
  EXPECT_THAT(future->message, testing::HasSubstr("node 2 (test2) died"));
}

TEST_F(PeerFailures, calls_that_are_lost_with_a_connection_of_living_nodes_fail_however_often_it_breaks) {
  make_nodes(3);
  auto* link = connect(1);
  for (int i = 0; i < 2; ++i) {
    SCOPED_TRACE(i);
    go_round_once(*link);
    // It has left node 2, and node 0 does not read it.
    asleep.insert(0);
    const auto before = stat(*nodes[2], "executed");
    const auto future = send(*link, 2);
    ASSERT_TRUE(run_until([&] { return stat(*nodes[2], "executed") > before; }));
    run_for(20);
    nodes[0]->links().each([](Link& one) {
      if (one.is_ready() && one.peer().node_id == 2) one.channel().disconnect(Error{TC_ERR_LIMIT, "no memory"});
    });
    asleep.clear();
    ASSERT_TRUE(run_until([&] { return future->ready.load(); }, 10'000));
    EXPECT_EQ(future->status, TC_ERR_DISCONNECTED) << future->message;
  }
}

TEST_F(PeerFailures, a_call_that_is_elsewhere_when_a_node_fails_goes_on) {
  make_nodes(3);
  auto* link = connect(0);
  go_round_once(*link);
  // It has passed node 1 and waits at node 2.
  const auto future = strand(*link, 2, 2);
  die(1);
  run_for(300);
  EXPECT_FALSE(future->ready.load()) << future->message;
  asleep.clear();
  ASSERT_TRUE(run_until([&] { return future->ready.load(); }));
  EXPECT_EQ(future->status, TC_OK) << future->message;
}

TEST_F(PeerFailures, of_many_calls_each_fails_or_ends_well_and_none_does_both) {
  make_nodes(5);
  std::vector<Link*> links;
  for (const uint32_t id : {0u, 1u, 2u, 4u}) links.push_back(connect(id));
  for (auto* link : links) go_round_once(*link);
  uint64_t lost = 0, well = 0;
  std::vector<std::shared_ptr<Future>> futures;
  for (int round = 0; round < 60; ++round)
    for (uint32_t i = 0; i < links.size(); ++i) {
      futures.push_back(send(*links[i], 1 + static_cast<uint32_t>(round) % 40));
      if (round % 3 == 0) drive(*nodes[i]);
    }
  // In the middle of it, with calls of every age in every place: some have ended, and some wait at node 3.
  asleep.insert(3);
  ASSERT_TRUE(run_until([&] { return std::ranges::any_of(futures, [](const auto& f) { return f->ready.load(); }); }));
  run_for(2);
  die(3);
  ASSERT_TRUE(run_until([&] { return std::ranges::all_of(futures, [](const auto& f) { return f->ready.load(); }); }));
  for (const auto& future : futures) {
    if (future->status == TC_OK) {
      ++well;
      continue;
    }
    ++lost;
    const bool refused = future->status == TC_ERR_IFUNC && future->code == TC_ERR_DISCONNECTED;
    EXPECT_TRUE(refused || future->status == TC_ERR_DISCONNECTED) << future->message;
    const auto names_it = testing::AnyOf(testing::HasSubstr("node 3 (test3)"), testing::HasSubstr("the peer at n3"));
    if (!refused) {
      EXPECT_THAT(future->message, names_it);
    }
  }
  EXPECT_GT(lost, 0u);
  EXPECT_GT(well, 0u);
  run_for(200);
  EXPECT_EQ(stat(*client, "late-answers"), 0u) << "a call that was given up was alive";
}

TEST_F(PeerFailures, a_call_that_reaches_its_deadline_names_the_node_that_failed_meanwhile) {
  make_nodes(3);
  auto* link = connect(0);
  go_round_once(*link);
  // It waits at node 2, which hangs: it neither runs it nor says that it has it.
  const auto future = strand(*link, 2, 2, 100'000);
  die(1);
  run_for(50);
  EXPECT_FALSE(future->ready.load()) << future->message;
  test::let_pass(std::chrono::seconds(100));
  ASSERT_TRUE(run_until([&] { return future->ready.load(); }));
  EXPECT_EQ(future->status, TC_ERR_TIMEOUT);
  EXPECT_THAT(future->message, testing::HasSubstr("it may still run (node 1 (test1) died meanwhile)"));
}

TEST_F(PeerFailures, a_node_that_starts_again_at_the_same_address_gets_the_code_and_the_calls) {
  make_nodes(3);
  auto* link = connect(0);
  go_round_once(*link);
  die(1);
  run_for(50);
  nodes[1] = net.make(1, [](Config& config) { config.cluster = {"n0", "n1", "n2"}; });
  const auto future = send(*link, 3);
  ASSERT_TRUE(run_until([&] { return future->ready.load(); }));
  EXPECT_EQ(future->status, TC_OK) << future->message;
  EXPECT_EQ(stat(*nodes[1], "code-loads"), 1u);
}

TEST_F(PeerFailures, a_client_that_leaves_is_no_failed_node) {
  make_nodes(2);
  auto* link = connect(0);
  go_round_once(*link);
  auto other = net.make(0, [](Config& config) { config.listen = "other"; });
  {
    const test::Background running(*nodes[0]);
    test::connect(*other, "n0");
  }
  const auto future = strand(*link, 1, 1);
  other.reset();
  run_for(100);
  EXPECT_FALSE(future->ready.load());
  asleep.clear();
  ASSERT_TRUE(run_until([&] { return future->ready.load(); }));
  EXPECT_EQ(future->status, TC_OK) << future->message;
}

}  // namespace
}  // namespace tc::node
