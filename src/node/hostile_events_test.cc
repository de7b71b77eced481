// SPDX-License-Identifier: Apache-2.0
//
// A peer that sends wrong or untrue cluster events, and snapshots that a peer asks for.
#include "node/testing/hostile.h"

namespace tc::node {
namespace {

using test::Hostile;
using test::RawPeer;
using test::ticket;
using wire::Kind;

TEST_F(Hostile, notices_that_make_no_sense_are_refused) {
  const auto refused = [&](uint32_t what, const Bytes& body, const std::string& why) {
    join();
    peer.send(Kind::notice, what, body);
    expect_dropped(why);
    leave();
  };
  refused(3, {}, "a notice is of type 3 when 0 to 2 are known");
  refused(wire::notice_gone, Bytes(10), "notice of a node that is gone");
  refused(wire::notice_gone, wire::encode_gone({1, 2, 3, "\x1b[2Jnode", "gone"}), "its name is not printable");
  refused(wire::notice_marker, wire::encode_marker({1, 1, 4}), "flags are 4 when 1 and 2 are known");
  refused(wire::notice_report, Bytes(14), "snapshot report: 1 bytes of tokens when a token takes 8");
}

TEST_F(Hostile, notices_that_lie_change_nothing) {
  join();
  // The node itself is dead; so is one that nobody knows; a report and a marker that belong to no snapshot of ours.
  peer.send(Kind::notice, wire::notice_gone, wire::encode_gone({target->identity().instance, 1, 1, "you", "I say so"}));
  peer.send(Kind::notice, wire::notice_gone, wire::encode_gone({12345, 1, 9, "nobody", "I say so"}));
  peer.send(Kind::notice, wire::notice_report, wire::encode_report({target->identity().instance, 1, false, {}}));
  peer.send(Kind::notice, wire::notice_marker, wire::encode_marker({target->identity().instance, 1, 0}));
  expect_still_linked();
}

TEST_F(Hostile, whoever_asks_for_a_snapshot_gets_one_and_old_questions_get_none) {
  join();
  // Of a call that waits for code which never comes.
  peer.send(Kind::call, wire::flag_token, 0, test::ticket(77));
  ASSERT_TRUE(run_until([&] { return peer.find(Kind::need) != nullptr; }));
  peer.send(Kind::notice, wire::notice_marker, wire::encode_marker({4711, 5, 0}));
  const auto notice = [&](uint32_t what) { return peer.find(Kind::notice, what); };
  ASSERT_TRUE(run_until([&] { return notice(wire::notice_report) != nullptr; }));
  const auto report = wire::decode_report(notice(wire::notice_report)->body).value();
  EXPECT_EQ(report.origin, 4711u);
  EXPECT_EQ(report.number, 5u);
  EXPECT_EQ(report.tokens, std::vector<uint64_t>{77});
  EXPECT_EQ(wire::decode_marker(notice(wire::notice_marker)->body)->flags, wire::marker_from_child);
  peer.frames.clear();
  peer.send(Kind::notice, wire::notice_marker, wire::encode_marker({4711, 4, 0}));
  expect_still_linked();
  EXPECT_EQ(peer.find(Kind::notice), nullptr);
}

TEST_F(Hostile, a_snapshot_sees_calls_that_run_as_soon_as_they_are_here) {
  join();
  RawPeer other{net.network};
  other.connect("n1");
  ASSERT_TRUE(run_until([&] { return other.progress(), other.peer.has_value(); }));
  run_some_calls_of(other);
  peer.send(Kind::notice, wire::notice_marker, wire::encode_marker({4711, 5, 0}));
  ASSERT_TRUE(run_until([&] { return other.progress(), other.find(Kind::notice) != nullptr; }));
  ASSERT_TRUE(other.send(Kind::call, wire::flag_token, 0, ticket(88)));
  ASSERT_TRUE(run_until([&] { return other.progress(), other.reply_to(88).has_value(); }));
  other.send(Kind::notice, wire::notice_marker, wire::encode_marker({4711, 5, 0}));
  ASSERT_TRUE(run_until([&] { return other.progress(), peer.find(Kind::notice, wire::notice_report) != nullptr; }));
  const auto report = wire::decode_report(peer.find(Kind::notice, wire::notice_report)->body).value();
  EXPECT_EQ(report.tokens, std::vector<uint64_t>{88});
  other.vanish();
}

}  // namespace
}  // namespace tc::node
