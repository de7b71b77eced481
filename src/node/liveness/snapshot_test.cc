// SPDX-License-Identifier: Apache-2.0
//
// A node that waits for an answer when another node dies, among peers made by hand: when it asks where its calls are,
// what counts as an answer, and what makes it ask again.
#include "node/liveness/snapshot.h"

#include "node/testing/node_test_kit.h"
#include "node/testing/raw_peer.h"

namespace tc::node {
namespace {

using test::RawPeer;
using testing::ElementsAre;
using testing::HasSubstr;
using wire::Kind;

class NodeSnapshots : public testing::Test {
 protected:
  NodeSnapshots() {
    keeper.says.name = "keeper";
    keeper.listen("keeper");
    greet(doomed, 4712, 8, "doomed");
    greet(client, 4713, Identity::no_id, "client");
    future = caller
                 ->call(*caller->links().at("keeper").value(), *test::message(*caller, "echo", "x"), 20'000,
                        Deadline::after_ms(0))
                 .value();
    EXPECT_TRUE(run_until([&] { return keeper.find(Kind::call_code) != nullptr; }));
    token = wire::read_call_header(keeper.find(Kind::call_code)->body.data()).token;
  }

  void greet(RawPeer& peer, uint64_t instance, uint32_t id, const std::string& name) {
    peer.says.instance = instance;
    peer.says.node_id = id;
    peer.says.name = name;
    peer.connect("n1");
    EXPECT_TRUE(run_until([&] { return peer.peer.has_value(); }));
  }
  bool run_until(const std::function<bool()>& done) {
    return tc::test::run_until(done, [&] {
      for (auto* peer : {&keeper, &doomed, &client}) peer->progress();
      caller->poll();
      caller->expire();
    });
  }
  void run_for(uint64_t ms) {
    const auto end = Deadline::after_ms(ms);
    run_until([&] { return end.passed(); });
  }
  // The numbers of the snapshots that the caller has asked this peer about.
  static std::vector<uint32_t> asked(const RawPeer& peer) {
    std::vector<uint32_t> numbers;
    for (const auto& frame : peer.frames)
      if (frame.header.kind == Kind::cluster_event && frame.header.number == wire::event_marker)
        numbers.push_back(wire::decode_marker(frame.body).value().number);
    return numbers;
  }
  bool is_asked(uint32_t snapshot) {
    return run_until([&] { return std::ranges::count(asked(keeper), snapshot) == 1; });
  }
  void send_marker(RawPeer& peer, uint32_t snapshot, uint8_t flags = 0) {
    peer.send(Kind::cluster_event, wire::event_marker,
              wire::encode_marker({caller->identity().instance, snapshot, flags}));
  }
  void send_report(RawPeer& peer, uint32_t snapshot, bool is_void, std::vector<uint64_t> tokens) {
    peer.send(Kind::cluster_event, wire::event_report,
              wire::encode_report({caller->identity().instance, snapshot, is_void, std::move(tokens)}));
  }
  void expect_the_call_failed() {
    ASSERT_TRUE(run_until([&] { return future->ready.load(); }));
    EXPECT_EQ(future->status, TC_ERR_DISCONNECTED);
    EXPECT_THAT(future->message, HasSubstr("node 8 (doomed) died"));
  }

  test::Net net;
  std::unique_ptr<Node> caller = net.make(1);
  RawPeer keeper{net.network};  // holds the call, or says so
  RawPeer doomed{net.network};  // a node that will die
  RawPeer client{net.network};  // no node of a cluster: its death is no news
  std::shared_ptr<Future> future;
  uint64_t token = 0;
};

TEST_F(NodeSnapshots, a_call_that_nobody_holds_has_died_with_the_node) {
  doomed.vanish();
  ASSERT_TRUE(is_asked(1));
  send_marker(client, 1);
  send_marker(keeper, 1, wire::marker_from_child);
  send_report(keeper, 1, false, {token + 1});
  expect_the_call_failed();
}

TEST_F(NodeSnapshots, a_call_that_is_reported_alive_goes_on) {
  doomed.vanish();
  ASSERT_TRUE(is_asked(1));
  send_marker(client, 1);
  send_marker(keeper, 1, wire::marker_from_child);
  send_report(keeper, 1, false, {token});
  run_for(50);
  EXPECT_FALSE(future->ready.load()) << future->message;
  EXPECT_THAT(asked(keeper), ElementsAre(1u)) << "the answer was clear";
}

TEST_F(NodeSnapshots, one_failure_is_asked_about_once_while_the_answer_is_due) {
  doomed.vanish();
  ASSERT_TRUE(is_asked(1));
  run_for(60);
  EXPECT_THAT(asked(keeper), ElementsAre(1u));
}

TEST_F(NodeSnapshots, the_failure_of_a_client_is_not_asked_about) {
  client.vanish();
  run_for(60);
  EXPECT_THAT(asked(keeper), ElementsAre());
}

TEST_F(NodeSnapshots, a_link_that_the_peer_had_not_recorded_makes_the_snapshot_void) {
  doomed.vanish();
  ASSERT_TRUE(is_asked(1));
  send_marker(client, 1);
  send_marker(keeper, 1, wire::marker_unrecorded);
  ASSERT_TRUE(is_asked(2));
  EXPECT_FALSE(future->ready.load()) << future->message;
  send_marker(client, 2);
  send_marker(keeper, 2);
  expect_the_call_failed();
}

TEST_F(NodeSnapshots, a_report_that_is_void_proves_nothing) {
  doomed.vanish();
  ASSERT_TRUE(is_asked(1));
  send_marker(client, 1);
  send_marker(keeper, 1, wire::marker_from_child);
  send_report(keeper, 1, true, {});
  ASSERT_TRUE(is_asked(2));
  EXPECT_FALSE(future->ready.load()) << future->message;
}

TEST_F(NodeSnapshots, a_link_that_is_lost_before_its_marker_makes_the_snapshot_void) {
  doomed.vanish();
  ASSERT_TRUE(is_asked(1));
  send_marker(keeper, 1);
  client.vanish();
  ASSERT_TRUE(is_asked(2)) << "else it would wait for that marker for ever";
  EXPECT_FALSE(future->ready.load()) << future->message;
  send_marker(keeper, 2);
  expect_the_call_failed();
}

TEST_F(NodeSnapshots, a_peer_that_asked_and_left_costs_the_others_nothing) {
  doomed.send(Kind::cluster_event, wire::event_marker, wire::encode_marker({4712, 1, 0}));
  ASSERT_TRUE(run_until([&] { return keeper.find(Kind::cluster_event, wire::event_marker) != nullptr; }));
  doomed.vanish();
  const auto is_told = [&] { return keeper.find(Kind::cluster_event, wire::event_gone) != nullptr; };
  ASSERT_TRUE(run_until(is_told));
  for (auto* peer : {&keeper, &client}) {
    peer->send(Kind::cluster_event, wire::event_marker, wire::encode_marker({4712, 1, 0}));
    run_for(2);
    EXPECT_FALSE(peer->lost.has_value());
  }
}

}  // namespace
}  // namespace tc::node
