// SPDX-License-Identifier: Apache-2.0
//
// Nodes that are named, on the network of this host, when the name server is silent and when it answers. A silent one
// stays silent until the test ends: a node that waited for it would hang here.
#include "node/testing/node_test_kit.h"
#include "transport/network/network.h"
#include "transport/testing/name_server.h"

namespace tc::node {
namespace {

using test::Background;
using test::Travel;
using testing::HasSubstr;
using transport::NameServer;

std::unique_ptr<Node> make_node(const NameServer& server, const test::Net::Adjust& adjust = {}) {
  auto config = Config::defaults();
  config.log = "off";
  config.code.use_bitcode = false;
  config.network.resolve_name = server.resolver();
  if (adjust) adjust(config);
  auto node = Node::create(std::move(config), [](const Config& made, transport::Events& events) {
    return transport::Network::create(made.network, events);
  });
  EXPECT_TRUE(node) << node.error().message;
  return std::move(*node);
}

// A client, and a node whose cluster has another one with the name "host".
class Named : public testing::Test {
 protected:
  std::shared_ptr<Future> travel(uint32_t deadline_ms) {
    const Travel one_hop{.hops_to_go = 1};
    const auto message = test::message(*client, "travel", {reinterpret_cast<const char*>(&one_hop), sizeof one_hop});
    return client->call(*link, *message, deadline_ms, Deadline::after_ms(5000)).value();
  }
  void wait_for(const Future& future) {
    EXPECT_TRUE(client->poll_until(Deadline::after_ms(20'000), [&] { return future.ready.load(); }));
  }

  test::Net net;  // for its folder
  NameServer server;
  std::unique_ptr<Node> other = make_node(server, [](Config& config) { config.id = 1; });
  std::unique_ptr<Node> node = make_node(server, [&](Config& config) {
    const auto address = other->address();
    config.cluster = {"127.0.0.1:1", "host" + address.substr(address.rfind(':'))};
  });
  std::unique_ptr<Background> running = std::make_unique<Background>(*node);
  std::unique_ptr<Node> client = make_node(server);
  Link* link = test::connect(*client, node->address());
};

TEST_F(Named, calls_go_on_while_a_forward_waits_for_a_silent_name_server) {
  const auto forwarded = travel(100);
  const auto unknown = travel(20'000);
  const auto echo = test::message(*client, "echo", "still here");
  for (int i = 0; i < 20; ++i) EXPECT_EQ(test::text_of(*test::call(*client, *link, *echo)), "still here");
  wait_for(*forwarded);
  EXPECT_EQ(forwarded->status, TC_ERR_TIMEOUT) << forwarded->message;
  EXPECT_FALSE(unknown->ready.load());
  EXPECT_EQ(server.asked("host"), 1u) << "one link waits for it, with both calls";
  server.answer("host", fail(TC_ERR_NOT_FOUND, "there is no such host"));
  wait_for(*unknown);
  EXPECT_NE(unknown->status, TC_OK);
  EXPECT_THAT(unknown->message, HasSubstr("there is no such host"));
  EXPECT_THAT(unknown->message, HasSubstr("host:"));
}

TEST_F(Named, a_forward_arrives_once_its_name_is_resolved) {
  const Background others(*other);
  const auto future = travel(20'000);
  const auto echo = test::message(*client, "echo", "x");
  EXPECT_EQ(test::call(*client, *link, *echo)->status, TC_OK);
  server.answer("host", transport::resolve("127.0.0.1:0", false).value());
  wait_for(*future);
  ASSERT_EQ(future->status, TC_OK) << future->message;
  Travel visited;
  ASSERT_EQ(future->bytes.size(), sizeof visited);
  std::memcpy(&visited, future->bytes.data(), sizeof visited);
  EXPECT_EQ(visited.visited, 2u);
  EXPECT_EQ(visited.nodes[1], 1u);
}

TEST_F(Named, a_node_ends_while_its_name_server_is_silent) {
  const auto future = travel(20'000);
  ASSERT_TRUE(client->poll_until(Deadline::after_ms(20'000), [&] { return server.asked("host") == 1; }));
  running.reset();
  node.reset();
  wait_for(*future);
  EXPECT_EQ(future->status, TC_ERR_DISCONNECTED) << future->message;
}

TEST_F(Named, who_connects_has_the_deadline_that_it_gave_and_reads_the_reason) {
  const auto late = client->connect("silent:7001", Deadline::after_ms(50));
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, TC_ERR_TIMEOUT);
  EXPECT_THAT(late.error().message, HasSubstr("silent:7001"));
  server.answer("nobody", fail(TC_ERR_NOT_FOUND, "there is no such host"));
  const auto unknown = client->connect("nobody:7001", Deadline::after_ms(20'000));
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code, TC_ERR_NOT_FOUND);
  EXPECT_THAT(unknown.error().message, HasSubstr("there is no such host"));
  const auto echo = test::message(*client, "echo", "x");
  EXPECT_EQ(test::call(*client, *link, *echo)->status, TC_OK);
}

}  // namespace
}  // namespace tc::node
