// SPDX-License-Identifier: Apache-2.0
//
// A link ends when neither side uses it: not when one of them closes its endpoint.
#include "node/testing/node_test_kit.h"
#include "node/testing/raw_peer.h"

namespace tc::node {
namespace {

using test::Background;
using testing::HasSubstr;

class LinkEnd : public testing::Test {
 protected:
  bool run_until(std::initializer_list<Node*> nodes, const std::function<bool()>& done) {
    return tc::test::run_until(
        done,
        [&] {
          for (Node* node : nodes) {
            node->poll();
            node->expire();
          }
        },
        10'000);
  }
  static uint64_t links_of(const Node& node) { return node.stat("links").value(); }
  // To a node that somebody has to drive meanwhile.
  static Link* connect(Node& from, Node& to) {
    const Background running(to);
    return test::connect(from, to.address());
  }
  static Status close(Node& node, Node& peer, Link& link) {
    const Background running(peer);
    return node.close(link, Deadline::after_ms(5000));
  }

  test::Net net;
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

TEST_F(LinkEnd, what_the_acceptor_has_sent_runs_though_the_code_for_it_was_freed_at_the_side_that_leaves) {
  const auto first = net.make(1), second = net.make(2);
  uint64_t counter = 0;
  first->executor().target_args = &counter;
  auto* const to_second = connect(*first, *second);
  auto* const to_first = connect(*second, *first);
  const auto tsi = test::message(*second, "tsi", "x");
  ASSERT_TRUE(second->send(*to_first, *tsi, false, Deadline::after_ms(0)));
  ASSERT_TRUE(run_until({first.get(), second.get()}, [&] { return counter == 1; }));
  first->store().evict(test::load_bundle("tsi").id());
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
  EXPECT_EQ(test::text_of(*test::call(*first, *again, *test::message(*first, "echo", "well"))), "well");
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
  test::RawPeer peer(net.network);
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
  test::RawPeer peer(net.network);
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

}  // namespace
}  // namespace tc::node
