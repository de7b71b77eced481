// SPDX-License-Identifier: Apache-2.0
//
// A peer that sends wrong or untrue cluster events, and snapshots that a peer asks for.
#include "node/testing/hostile.h"

namespace tc::node {
namespace {

using test::call_header;
using test::Hostile;
using test::RawPeer;
using wire::Kind;

TEST_F(Hostile, cluster_events_that_make_no_sense_are_refused) {
  const auto refused = [&](uint32_t what, const Bytes& body, const std::string& why) {
    join();
    peer.send(Kind::cluster_event, what, body);
    expect_dropped(why);
    leave();
  };
  refused(3, {}, "a cluster event is of type 3 when 0 to 2 are known");
  refused(wire::event_gone, Bytes(10), "cluster event of a lost node");
  refused(wire::event_gone, wire::encode_gone({1, 2, 3, "\x1b[2Jnode", "gone"}), "its name is not printable");
  refused(wire::event_marker, wire::encode_marker({1, 1, 4}), "flags are 4 when 1 and 2 are known");
  refused(wire::event_report, Bytes(14), "snapshot report: 1 bytes of tokens when a token takes 8");
}

TEST_F(Hostile, cluster_events_that_lie_change_nothing) {
  join();
  // The node itself is dead; so is one that nobody knows; a report and a marker that belong to no snapshot of ours.
  peer.send(Kind::cluster_event, wire::event_gone,
            wire::encode_gone({target->identity().instance, 1, 1, "you", "I say so"}));
  peer.send(Kind::cluster_event, wire::event_gone, wire::encode_gone({12345, 1, 9, "nobody", "I say so"}));
  peer.send(Kind::cluster_event, wire::event_report, wire::encode_report({target->identity().instance, 1, false, {}}));
  peer.send(Kind::cluster_event, wire::event_marker, wire::encode_marker({target->identity().instance, 1, 0}));
  expect_still_linked();
}

TEST_F(Hostile, a_node_that_hears_of_its_own_end_looks_for_its_calls_as_a_connection_to_it_broke) {
  join();
  Link* link = nullptr;
  target->links().each([&](Link& one) { link = one.peer().name == "raw" ? &one : link; });
  const auto future = target->call(*link, *test::message(*target, "echo", "x"), 0, Deadline::after_ms(0)).value();
  peer.send(Kind::cluster_event, wire::event_gone,
            wire::encode_gone({target->identity().instance, 4711, 1, "you", "I say so"}));
  EXPECT_TRUE(run_until([&] {
    target->expire();
    return peer.find(Kind::cluster_event, wire::event_marker) != nullptr;
  }));
}

TEST_F(Hostile, whoever_asks_for_a_snapshot_gets_one_and_old_questions_get_none) {
  join();
  // Of a call that waits for code which never comes.
  peer.send(Kind::call, wire::flag_call_header, 0, test::call_header(77));
  ASSERT_TRUE(run_until([&] { return peer.find(Kind::need) != nullptr; }));
  peer.send(Kind::cluster_event, wire::event_marker, wire::encode_marker({4711, 5, 0}));
  const auto notice = [&](uint32_t what) { return peer.find(Kind::cluster_event, what); };
  ASSERT_TRUE(run_until([&] { return notice(wire::event_report) != nullptr; }));
  const auto report = wire::decode_report(notice(wire::event_report)->body).value();
  EXPECT_EQ(report.origin, 4711u);
  EXPECT_EQ(report.number, 5u);
  EXPECT_EQ(report.tokens, std::vector<uint64_t>{77});
  EXPECT_EQ(wire::decode_marker(notice(wire::event_marker)->body)->flags, wire::marker_from_child);
  peer.frames.clear();
  peer.send(Kind::cluster_event, wire::event_marker, wire::encode_marker({4711, 4, 0}));
  expect_still_linked();
  EXPECT_EQ(peer.find(Kind::cluster_event), nullptr);
}

TEST_F(Hostile, a_snapshot_sees_calls_that_run_as_soon_as_they_are_here) {
  join();
  RawPeer other{net.network};
  other.connect("n1");
  ASSERT_TRUE(run_until([&] { return other.progress(), other.peer.has_value(); }));
  run_some_calls_of(other);
  peer.send(Kind::cluster_event, wire::event_marker, wire::encode_marker({4711, 5, 0}));
  ASSERT_TRUE(run_until([&] { return other.progress(), other.find(Kind::cluster_event) != nullptr; }));
  ASSERT_TRUE(other.send(Kind::call, wire::flag_call_header, 0, call_header(88)));
  ASSERT_TRUE(run_until([&] { return other.progress(), other.reply_to(88).has_value(); }));
  other.send(Kind::cluster_event, wire::event_marker, wire::encode_marker({4711, 5, 0}));
  ASSERT_TRUE(
      run_until([&] { return other.progress(), peer.find(Kind::cluster_event, wire::event_report) != nullptr; }));
  const auto report = wire::decode_report(peer.find(Kind::cluster_event, wire::event_report)->body).value();
  EXPECT_EQ(report.tokens, std::vector<uint64_t>{88});
  other.vanish();
}

}  // namespace
}  // namespace tc::node
