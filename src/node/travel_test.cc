// SPDX-License-Identifier: Apache-2.0
//
// X-RDMA: code that goes on from node to node by itself, and its answer that goes straight home.
#include "node/testing/node_test_kit.h"

namespace tc::node {
namespace {

using test::Background;
using test::Travel;

class Cluster {
 public:
  explicit Cluster(uint32_t size, const test::Net::Adjust& adjust = {}) {
    for (uint32_t id = 0; id < size; ++id)
      nodes.push_back(net.make(id, [&](Config& config) {
        for (uint32_t other = 0; other < size; ++other) config.cluster.push_back("n" + std::to_string(other));
        if (adjust) adjust(config);
      }));
  }
  void start() {
    for (auto& node : nodes) running.push_back(std::make_unique<Background>(*node));
  }
  void stop() { running.clear(); }

  test::Net net;
  std::vector<std::unique_ptr<Node>> nodes;
  std::vector<std::unique_ptr<Background>> running;
};

std::shared_ptr<Future> travel(Node& client, Link& link, uint32_t hops) {
  Travel payload;
  payload.hops_to_go = hops;
  const std::string_view bytes(reinterpret_cast<const char*>(&payload), sizeof payload);
  return test::call(client, link, *test::message(client, "travel", bytes));
}

Travel result_of(const Future& future) {
  Travel payload;
  if (future.bytes.size() == sizeof payload) std::memcpy(&payload, future.bytes.data(), sizeof payload);
  return payload;
}

TEST(Travel, an_ifunc_forwards_itself_to_nodes_that_never_saw_it_and_answers_the_first_sender) {
  Cluster cluster(2);
  auto client = cluster.net.make(99);
  cluster.start();
  const auto answer = travel(*client, *test::connect(*client, "n0"), 5);
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
    const auto answer = travel(*client, *link, 8);
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
    EXPECT_EQ(travel(*clients[i], *links[i], hops)->status, TC_OK);
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
  for (int lap = 0; lap < 4; ++lap) ASSERT_EQ(travel(*client, *link, 9)->status, TC_OK);
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
    const auto answer = travel(*client, *link, 9);
    ASSERT_EQ(answer->status, TC_OK) << answer->message;
    EXPECT_EQ(result_of(*answer).visited, 10u);
  }
  EXPECT_EQ(cluster.nodes[2]->stat("executed").value(), 12u);
}

TEST(Travel, code_that_takes_the_memory_of_code_that_was_evicted_goes_on_as_itself) {
  Cluster cluster(2);
  auto client = cluster.net.make(99, [](Config& config) { config.hops = 6; });
  cluster.start();
  auto* link = test::connect(*client, "n0");
  const auto bundle = test::load_bundle("travel");
  // The node where the hops run out says whose they were.
  const auto who_stopped = [&](const Bundle& code) {
    const Travel payload{.hops_to_go = 100};
    Bytes bytes(sizeof payload);
    std::memcpy(bytes.data(), &payload, sizeof payload);
    const auto ifunc = client->register_bundle(code).value();
    const auto sent = source::Message::create(ifunc, bytes.data(), bytes.size(), 1u << 30).value();
    return test::call(*client, *link, *sent)->message;
  };
  for (int i = 0; i < 3; ++i) ASSERT_THAT(who_stopped(bundle), testing::HasSubstr("ifunc 'travel' failed"));
  for (int i = 0; i < 20; ++i) {
    const auto other = test::renamed(bundle, "wander" + std::to_string(i));
    cluster.running[0].reset();
    cluster.nodes[0]->store().evict(i == 0 ? bundle.id()
                                           : test::renamed(bundle, "wander" + std::to_string(i - 1)).id());
    cluster.running[0] = std::make_unique<Background>(*cluster.nodes[0]);
    for (int k = 0; k < 3; ++k)
      ASSERT_THAT(who_stopped(other), testing::HasSubstr("ifunc 'wander" + std::to_string(i) + "' failed"));
  }
}

TEST(Travel, an_ifunc_may_forward_itself_to_its_own_node) {
  Cluster cluster(1);
  auto client = cluster.net.make(99);
  cluster.start();
  const auto answer = travel(*client, *test::connect(*client, "n0"), 3);
  ASSERT_EQ(answer->status, TC_OK) << answer->message;
  EXPECT_EQ(result_of(*answer).visited, 4u);
}

TEST(Travel, a_forward_loop_ends_at_the_hop_limit_and_the_sender_is_told) {
  Cluster cluster(2);
  auto client = cluster.net.make(99, [](Config& config) { config.hops = 10; });
  cluster.start();
  const auto answer = travel(*client, *test::connect(*client, "n0"), 1000);
  EXPECT_EQ(answer->status, TC_ERR_IFUNC);
  EXPECT_EQ(answer->code, TC_ERR_LIMIT);
}

TEST(Travel, a_sender_that_listens_nowhere_is_told_at_once_that_no_answer_could_find_it) {
  Cluster cluster(2);
  auto client = cluster.net.make(99, [](Config& config) { config.listen = ""; });
  cluster.start();
  const auto answer = travel(*client, *test::connect(*client, "n0"), 3);
  EXPECT_EQ(answer->status, TC_ERR_IFUNC);
  EXPECT_EQ(answer->code, TC_ERR_DISCONNECTED);
}

TEST(Travel, an_ifunc_injects_another_one_by_name_into_other_nodes) {
  Cluster cluster(2);
  unsigned char text[16] = {};
  cluster.nodes[1]->expose("text", text, sizeof text);
  ASSERT_TRUE(cluster.nodes[0]->register_bundle(test::load_bundle("append")));
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
  ASSERT_TRUE(cluster.nodes[0]->register_bundle(test::renamed(test::load_bundle("refuse"), "echo")));
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

}  // namespace
}  // namespace tc::node
