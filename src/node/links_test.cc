// SPDX-License-Identifier: Apache-2.0
//
// How links begin and end.
#include <thread>

#include "node/rates.h"
#include "node/testing/node_test_kit.h"
#include "node/testing/raw_peer.h"
#include "transport/network/network.h"
#include "transport/testing/name_server.h"

namespace tc::node::test {
namespace {

using ::testing::HasSubstr;
using transport::NameServer;

// ---- A link ends when neither side uses it, not when one of them closes its endpoint

class LinkEnd : public testing::Test {
 protected:
  static uint64_t links_of(Node& node) { return node.stat("links").value(); }
  // To a node that somebody has to drive meanwhile.
  static Link* connect(Node& from, Node& to) {
    const Background running(to);
    return test::connect(from, to.address());
  }
  static Status close(Node& node, Node& peer, Link& link) {
    const Background running(peer);
    return node.close(link, Deadline::after_ms(5000));
  }

  Net net;
};

TEST_F(LinkEnd, a_client_that_closes_its_endpoint_and_lives_on_ends_the_link_at_both_sides) {
  const auto server = net.make(1), client = net.make(2);
  auto* const link = connect(*client, *server);
  EXPECT_TRUE(close(*client, *server, *link));
  EXPECT_TRUE(run_until({server.get()}, [&] { return links_of(*server) == 0; }));
  EXPECT_TRUE(run_until({client.get()}, [&] { return links_of(*client) == 0; }));
  EXPECT_EQ(client->stat("dropped-links"), 0u);
}

TEST_F(LinkEnd, who_accepted_a_link_goes_on_using_it_when_the_other_side_closes_its_endpoint) {
  const auto first = net.make(1), second = net.make(2);
  uint64_t counter = 0;
  first->executor().target_args = &counter;
  auto* const to_second = connect(*first, *second);
  auto* const to_first = connect(*second, *first);
  ASSERT_EQ(links_of(*first), 1u) << "one connection serves both ways";
  const auto tsi = test::message(*second, "tsi", "x");
  constexpr uint64_t before = 500, after = 500;
  for (uint64_t i = 0; i < before; ++i) ASSERT_TRUE(second->send(*to_first, *tsi, false, Deadline::after_ms(0)));
  EXPECT_TRUE(close(*first, *second, *to_second));
  for (uint64_t i = 0; i < after; ++i) ASSERT_TRUE(second->send(*to_first, *tsi, false, Deadline::after_ms(0)));
  {
    const Background running(*first);
    EXPECT_TRUE(to_first->flush(Deadline::after_ms(5000)));
    EXPECT_EQ(test::call(*second, *to_first, *tsi)->status, TC_OK);
  }
  EXPECT_EQ(counter, before + after + 1);
  EXPECT_EQ(links_of(*first), 1u);
  EXPECT_TRUE(close(*second, *first, *to_first));
  EXPECT_TRUE(run_until({first.get(), second.get()}, [&] { return links_of(*first) + links_of(*second) == 0; }));
}

TEST_F(LinkEnd, what_the_acceptor_has_sent_runs_though_both_sides_close_at_once) {
  const auto first = net.make(1), second = net.make(2);
  uint64_t counter = 0;
  first->executor().target_args = &counter;
  auto* const to_second = connect(*first, *second);
  auto* const to_first = connect(*second, *first);
  const auto tsi = test::message(*second, "tsi", "x");
  for (int i = 0; i < 1000; ++i) ASSERT_TRUE(second->send(*to_first, *tsi, false, Deadline::after_ms(0)));
  (void)second->close(*to_first, Deadline::after_ms(0));
  (void)first->close(*to_second, Deadline::after_ms(0));
  EXPECT_TRUE(run_until({first.get(), second.get()}, [&] { return links_of(*first) + links_of(*second) == 0; }));
  EXPECT_EQ(counter, 1000u);
}

TEST_F(LinkEnd, what_the_acceptor_has_sent_runs_though_the_side_that_leaves_freed_its_code) {
  const auto first = net.make(1), second = net.make(2);
  uint64_t counter = 0;
  first->executor().target_args = &counter;
  auto* const to_second = connect(*first, *second);
  auto* const to_first = connect(*second, *first);
  const auto tsi = test::message(*second, "tsi", "x");
  ASSERT_TRUE(second->send(*to_first, *tsi, false, Deadline::after_ms(0)));
  ASSERT_TRUE(run_until({first.get(), second.get()}, [&] { return counter == 1; }));
  first->store().evict(load_bundle("tsi").id());
  ASSERT_TRUE(second->send(*to_first, *tsi, false, Deadline::after_ms(0)));
  (void)second->close(*to_first, Deadline::after_ms(0));
  (void)first->close(*to_second, Deadline::after_ms(0));
  EXPECT_TRUE(run_until({first.get(), second.get()}, [&] { return links_of(*first) + links_of(*second) == 0; }));
  EXPECT_EQ(counter, 2u);
}

TEST_F(LinkEnd, an_endpoint_after_that_is_a_new_link) {
  const auto first = net.make(1), second = net.make(2);
  auto* const to_second = connect(*first, *second);
  auto* const to_first = connect(*second, *first);
  EXPECT_TRUE(close(*first, *second, *to_second));
  auto* const again = connect(*first, *second);
  EXPECT_EQ(links_of(*first), 2u);
  EXPECT_NE(again->id(), to_first->id());
  auto* const back = connect(*second, *first);
  EXPECT_NE(back, to_first) << "that one ends when its last endpoint does";
  EXPECT_TRUE(close(*second, *first, *to_first));
  EXPECT_TRUE(run_until({first.get(), second.get()}, [&] { return links_of(*first) == 1; }));
  const Background running(*second);
  EXPECT_EQ(text_of(*test::call(*first, *again, *test::message(*first, "echo", "well"))), "well");
}

TEST_F(LinkEnd, calls_of_the_closed_endpoint_that_still_wait_are_told_at_once) {
  const auto first = net.make(1), second = net.make(2);
  auto* const to_second = connect(*first, *second);
  (void)connect(*second, *first);
  const auto future = first->call(*to_second, *test::message(*first, "echo", ""), 0, Deadline::after_ms(0)).value();
  (void)first->close(*to_second, Deadline::after_ms(0));
  EXPECT_TRUE(future->ready);
  EXPECT_EQ(future->status, TC_ERR_CLOSED);
}

TEST_F(LinkEnd, a_peer_of_before_that_closes_the_connection_behind_its_last_frame_is_gone) {
  const auto node = net.make(1);
  RawPeer peer(net.network);
  peer.says.address = "raw";
  peer.connect("n1");
  const auto progress = [&] {
    node->poll();
    peer.progress();
  };
  ASSERT_TRUE(tc::test::run_until([&] { return peer.peer.has_value() && links_of(*node) == 1; }, progress));
  auto* const link = node->connect("raw", Deadline::after_ms(0)).value();
  ASSERT_TRUE(peer.send(wire::Kind::disconnect, 0, wire::encode_disconnect({TC_OK, "closed"})));
  peer.flush();
  for (int i = 0; i < 100; ++i) progress();
  EXPECT_FALSE(link->is_lost()) << "it says that it does not use the link any more, and no more than that";
  peer.vanish();
  ASSERT_TRUE(run_until({node.get()}, [&] { return link->is_lost(); }));
  EXPECT_EQ(link->reason().code, TC_ERR_DISCONNECTED);
  EXPECT_THAT(link->reason().message, HasSubstr("closed the connection"));
  EXPECT_FALSE(node->close(*link, Deadline::after_ms(0)));
  EXPECT_EQ(links_of(*node), 0u);
}

TEST_F(LinkEnd, the_side_that_accepted_has_the_last_word) {
  const auto node = net.make(1);
  RawPeer peer(net.network);
  peer.says.address = "raw";
  peer.connect("n1");
  const auto progress = [&] {
    node->poll();
    node->expire();
    peer.progress();
  };
  ASSERT_TRUE(tc::test::run_until([&] { return peer.peer.has_value() && links_of(*node) == 1; }, progress));
  auto* const link = node->connect("raw", Deadline::after_ms(0)).value();
  ASSERT_TRUE(peer.send(wire::Kind::disconnect, 0, wire::encode_disconnect({TC_OK, "closed"})));
  peer.flush();
  for (int i = 0; i < 100; ++i) progress();
  EXPECT_FALSE(peer.bye);
  EXPECT_FALSE(node->close(*link, Deadline::after_ms(0))) << "the peer says nothing to a flush";
  ASSERT_TRUE(tc::test::run_until([&] { return peer.lost.has_value(); }, progress));
  ASSERT_TRUE(peer.bye);
  EXPECT_EQ(peer.bye->status, TC_OK);
  EXPECT_EQ(links_of(*node), 0u);
}

// What a node tells its peers of others that are gone is of no use to a peer that goes as well. All nodes of a cluster are
// ended at once when its command is done.
TEST_F(LinkEnd, nothing_waits_at_the_end_for_a_peer_that_is_gone_nor_is_called_lost) {
  std::string log;
  auto first = net.make(1, [&](Config& config) {
    config.log = "warn";
    config.log_sink = [&](int, const char* line) { log += line; };
  });
  auto second = net.make(2);
  auto* const link = connect(*first, *second);
  const auto notice = wire::encode_gone({5, 6, 7, "five", "it ended"});
  while (link->channel().backlog_bytes() == 0) link->post_event(wire::event_gone, notice);
  second.reset();
  const auto begin = now_ns();
  first.reset();
  EXPECT_LT(now_ns() - begin, transport::ClosingTime::idle_ns) << "nobody will ever read it";
  EXPECT_THAT(log, testing::Not(HasSubstr("are lost")));
}

// ---- Connecting to a peer that is busy

TEST(PausesBetweenRetries, are_random_and_twice_as_long_each_time_up_to_a_limit) {
  for (const uint64_t random : {uint64_t{0}, uint64_t{1}, uint64_t{12'345'678'901}, UINT64_MAX}) {
    BusyRetries retries;
    for (uint64_t most = BusyRetries::first_ns; most < 100 * BusyRetries::most_ns; most *= 2) {
      const auto pause = retries.next_pause_ns(random);
      EXPECT_GT(pause, 0u);
      EXPECT_LE(pause, std::min(most, BusyRetries::most_ns));
    }
    EXPECT_EQ(retries.next_pause_ns(BusyRetries::most_ns - 1), BusyRetries::most_ns);
  }
}

// A peer that has no room for the first ones that come.
class ABusyPeer : public testing::Test {
 protected:
  ABusyPeer() { peer.listen("busy"); }
  Result<Link*> connect(unsigned refusals, tc_status_t why, Deadline deadline) {
    peer.refusals = refusals;
    peer.refusal = Error{why, "too many peers connect to this node"};
    std::jthread serving([this](const std::stop_token& stop) {
      while (!stop.stop_requested()) {
        peer.progress();
        std::this_thread::yield();
      }
    });
    return node->connect("busy", deadline);
  }

  Net net;
  std::unique_ptr<Node> node = net.make(1);
  RawPeer peer{net.network};
};

TEST_F(ABusyPeer, is_asked_again_until_it_has_room) {
  const auto link = connect(5, TC_ERR_LIMIT, Deadline::after_ms(60'000));
  ASSERT_TRUE(link) << link.error().message;
  EXPECT_EQ(peer.refusals, 0u);
  EXPECT_TRUE((*link)->is_ready());
  EXPECT_EQ(node->stat("dropped-links"), 5u);
}

TEST_F(ABusyPeer, is_asked_until_the_deadline_and_its_refusal_is_what_the_caller_gets) {
  const auto link = connect(UINT32_MAX, TC_ERR_LIMIT, Deadline::after_ms(300));
  ASSERT_FALSE(link);
  EXPECT_EQ(link.error().code, TC_ERR_LIMIT);
  EXPECT_THAT(link.error().message, HasSubstr("too many peers connect"));
  EXPECT_LT(peer.refusals, UINT32_MAX - 1) << "it was asked once";
}

TEST_F(ABusyPeer, that_refuses_for_another_reason_is_not_asked_again) {
  const auto link = connect(UINT32_MAX, TC_ERR_DENIED, Deadline::after_ms(60'000));
  ASSERT_FALSE(link);
  EXPECT_EQ(link.error().code, TC_ERR_DENIED);
  EXPECT_EQ(peer.refusals, UINT32_MAX - 1);
}

// ---- Nodes that are named, on the network of this host
//
// The name server is silent, or answers. A silent one stays silent until the test ends: a node that waited for it would
// hang here.

std::unique_ptr<Node> make_node(const NameServer& server, const Net::Adjust& adjust = {}) {
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
    return client->call(*link, *test::travel(*client, 1), deadline_ms, Deadline::after_ms(5000)).value();
  }
  void wait_for(const Future& future) {
    EXPECT_TRUE(client->poll_until(Deadline::after_ms(20'000), [&] { return future.ready.load(); }));
  }

  Net net;  // for its folder
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
  for (int i = 0; i < 20; ++i) EXPECT_EQ(text_of(*test::call(*client, *link, *echo)), "still here");
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
  const auto visited = result_of(*future);
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
}  // namespace tc::node::test
