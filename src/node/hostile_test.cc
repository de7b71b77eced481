// SPDX-License-Identifier: Apache-2.0
//
// A node and a peer that lies, stammers or dies in the middle of a word: the link is dropped with a reason, or the call
// is refused with a status, and everybody else is served as before.
#include "node/testing/node_test_kit.h"
#include "node/testing/raw_peer.h"

namespace tc::node {
namespace {

using test::code_section;
using test::copy_of;
using test::RawPeer;
using test::ticket;
using test::operator+;
using testing::HasSubstr;
using wire::Kind;

class Hostile : public testing::Test {
 protected:
  Hostile() : target(net.make(1, [](Config& c) { c.max_message = 64 * 1024; })), client(net.make(2)) {
    const test::Background running(*target);
    good_link = test::connect(*client, "n1");
  }

  bool pump(const std::function<bool()>& done) {
    const auto deadline = Deadline::after_ms(5000);
    while (!done()) {
      if (deadline.passed()) return false;
      turn();
    }
    return true;
  }
  void turn() {
    peer.progress();
    target->poll();
    client->poll();
  }
  void turns() {
    for (int i = 0; i < 8; ++i) turn();
  }
  // So that the next ones run as soon as they are here.
  void run_some_calls_of(RawPeer& from) {
    const auto answered = [&](uint64_t token) {
      return pump([&] { return from.progress(), from.reply_to(token).has_value(); });
    };
    ASSERT_TRUE(from.send(Kind::call_code, wire::flag_token, 0, echo_with_code(1, "x")));
    ASSERT_TRUE(answered(1));
    for (uint64_t token = 2; token < 6; ++token) {
      ASSERT_TRUE(from.send(Kind::call, wire::flag_token, 0, ticket(token)));
      ASSERT_TRUE(answered(token));
    }
  }

  void join() {
    peer.connect("n1");
    ASSERT_TRUE(pump([&] { return peer.peer.has_value(); }));
    turns();
  }
  void leave() {
    peer.vanish();
    ASSERT_TRUE(pump([&] { return links() == 1; }));
    peer.frames.clear();
    peer.peer.reset();
    peer.bye.reset();
    peer.lost.reset();
  }
  uint64_t links() { return target->stat("links").value(); }
  void expect_dropped(const std::string& reason) {
    EXPECT_TRUE(pump([&] { return peer.lost.has_value(); })) << "expected: " << reason;
    ASSERT_TRUE(peer.bye.has_value()) << "without a word; expected: " << reason;
    EXPECT_THAT(peer.bye->reason, HasSubstr(reason));
    EXPECT_NE(peer.bye->status, TC_OK);
  }
  // Before it was let in.
  void expect_refused(tc_status_t status, const std::string& reason) {
    EXPECT_TRUE(pump([&] { return peer.lost.has_value(); })) << "expected: " << reason;
    EXPECT_FALSE(peer.peer.has_value());
    EXPECT_EQ(peer.lost->code, status);
    EXPECT_THAT(peer.lost->message, HasSubstr(reason));
  }
  void expect_still_linked() {
    turns();
    EXPECT_FALSE(peer.lost.has_value()) << peer.lost->message;
    EXPECT_FALSE(peer.bye.has_value()) << peer.bye->reason;
  }
  // Whatever happened: the others are served, and nothing of the peer stays behind.
  void TearDown() override {
    const auto future =
        client->call(*good_link, *test::message(*client, "echo", "still there"), 5000, Deadline::after_ms(100));
    ASSERT_TRUE(future) << future.error().message;
    EXPECT_TRUE(pump([&] { return (*future)->ready.load(); }));
    EXPECT_EQ(as_text((*future)->bytes), "still there");
    peer.vanish();
    EXPECT_TRUE(pump([&] { return links() == others; })) << links();
  }

  Bytes echo_with_code(uint64_t token, std::string_view payload) {
    return ticket(token) + code_section(echo) + as_bytes(payload);
  }

  test::Net net;
  std::unique_ptr<Node> target, client;
  Link* good_link = nullptr;
  uint64_t others = 1;  // links of the target's that are not the peer's
  RawPeer peer{net.network};
  Bundle echo = test::load_bundle("echo");
  Bundle refuse = test::load_bundle("refuse");
};

// ---- Greeting

TEST_F(Hostile, another_protocol_version_is_told_both_versions) {
  auto hello = RawPeer::hello();
  hello.protocol = wire::protocol_version + 1;
  // A later version may have more fields: the version stands in front of all that could differ.
  peer.connect("n1", wire::encode_hello(hello) + as_bytes("and more"));
  expect_refused(TC_ERR_VERSION, "the peer speaks protocol version 4 when this build speaks version 3");
}

TEST_F(Hostile, another_ifunc_abi_is_told_both_versions) {
  auto hello = RawPeer::hello();
  hello.abi = 99;
  peer.connect("n1", wire::encode_hello(hello));
  expect_refused(TC_ERR_VERSION, "has ifunc ABI 99 when this build has");
}

TEST_F(Hostile, a_hello_with_bytes_behind_it_is_refused) {
  peer.connect("n1", wire::encode_hello(RawPeer::hello()) + as_bytes("x"));
  expect_refused(TC_ERR_MALFORMED, "greeting of a node");
}

TEST_F(Hostile, a_hello_cut_short_anywhere_is_refused) {
  const auto whole = wire::encode_hello(RawPeer::hello());
  for (size_t size = 0; size < whole.size(); ++size) {
    peer.connect("n1", ByteView(whole).first(size));
    expect_refused(TC_ERR_MALFORMED, "greeting of a node");
    leave();
  }
}

TEST_F(Hostile, a_triple_that_makes_no_sense_is_refused) {
  auto hello = RawPeer::hello();
  hello.triple = "-";
  peer.connect("n1", wire::encode_hello(hello));
  expect_refused(TC_ERR_INVALID, "triple");
}

TEST_F(Hostile, a_peer_that_is_refused_runs_nothing) {
  auto hello = RawPeer::hello();
  hello.abi = 99;
  peer.connect("n1", wire::encode_hello(hello));
  EXPECT_FALSE(peer.send(Kind::call_code, wire::flag_token, 0, echo_with_code(5, "early")));
  expect_refused(TC_ERR_VERSION, "has ifunc ABI 99");
  EXPECT_EQ(target->stat("code-loads"), 0u);
}

TEST_F(Hostile, words_of_goodbye_cannot_steer_a_terminal) {
  join();
  peer.send(Kind::bye, 0, wire::encode_bye({TC_ERR_DENIED, "\x1b[2Jgone"}));
  ASSERT_TRUE(pump([&] { return peer.lost.has_value(); }));
  EXPECT_EQ(target->stat("dropped-links"), 1u);
}

// ---- Among the calls

TEST_F(Hostile, kinds_that_have_no_place_among_calls_are_refused) {
  for (const auto kind : {static_cast<Kind>(8), static_cast<Kind>(12), static_cast<Kind>(15)}) {
    join();
    peer.send(kind, 0, Bytes(16));
    expect_dropped(fmt::format("a frame of kind {} has no place among calls", static_cast<int>(kind)));
    leave();
  }
}

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
  peer.send(Kind::notice, wire::notice_gone, wire::encode_gone({target->instance(), 1, 1, "you", "I say so"}));
  peer.send(Kind::notice, wire::notice_gone, wire::encode_gone({12345, 1, 9, "nobody", "I say so"}));
  peer.send(Kind::notice, wire::notice_report, wire::encode_report({target->instance(), 1, false, {}}));
  peer.send(Kind::notice, wire::notice_marker, wire::encode_marker({target->instance(), 1, 0}));
  expect_still_linked();
}

TEST_F(Hostile, whoever_asks_for_a_snapshot_gets_one_and_old_questions_get_none) {
  join();
  // Of a call that waits for code which never comes.
  peer.send(Kind::call, wire::flag_token, 0, test::ticket(77));
  ASSERT_TRUE(pump([&] { return peer.find(Kind::need) != nullptr; }));
  peer.send(Kind::notice, wire::notice_marker, wire::encode_marker({4711, 5, 0}));
  const auto notice = [&](uint32_t what) { return peer.find(Kind::notice, what); };
  ASSERT_TRUE(pump([&] { return notice(wire::notice_report) != nullptr; }));
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
  ASSERT_TRUE(pump([&] { return other.progress(), other.peer.has_value(); }));
  run_some_calls_of(other);
  peer.send(Kind::notice, wire::notice_marker, wire::encode_marker({4711, 5, 0}));
  ASSERT_TRUE(pump([&] { return other.progress(), other.find(Kind::notice) != nullptr; }));
  ASSERT_TRUE(other.send(Kind::call, wire::flag_token, 0, ticket(88)));
  ASSERT_TRUE(pump([&] { return other.progress(), other.reply_to(88).has_value(); }));
  other.send(Kind::notice, wire::notice_marker, wire::encode_marker({4711, 5, 0}));
  ASSERT_TRUE(pump([&] { return other.progress(), peer.find(Kind::notice, wire::notice_report) != nullptr; }));
  const auto report = wire::decode_report(peer.find(Kind::notice, wire::notice_report)->body).value();
  EXPECT_EQ(report.tokens, std::vector<uint64_t>{88});
  other.vanish();
}

TEST_F(Hostile, a_call_with_flags_from_the_future_is_refused) {
  for (const auto kind : {Kind::call, Kind::call_code})
    for (const uint8_t flags : {2, 4, 5, 6, 7, 8, 9, 12}) {
      join();
      peer.send(kind, flags, 0, Bytes(64));
      expect_dropped(fmt::format("a call has flags {}", flags));
      leave();
    }
}

TEST_F(Hostile, numbers_end_somewhere) {
  for (const auto kind : {Kind::call, Kind::call_code}) {
    join();
    peer.send(kind, wire::flag_token, 1u << 20, kind == Kind::call ? ticket(5) : echo_with_code(5, "x"));
    expect_dropped("a call has number 1048576 when numbers end at 1048575");
    leave();
  }
}

TEST_F(Hostile, a_call_shorter_than_its_ticket_is_refused) {
  join();
  ASSERT_TRUE(peer.send(Kind::call_code, wire::flag_token, 0, echo_with_code(5, "x")));
  peer.send(Kind::call, wire::flag_token, 0, Bytes(15));
  expect_dropped("a call with a token is 15 bytes");
}

TEST_F(Hostile, a_route_cut_short_anywhere_is_refused) {
  const auto route = wire::encode_route({4711, 7, "somewhere:1"});
  for (size_t size = 0; size < route.size(); ++size) {
    join();
    ASSERT_TRUE(peer.send(Kind::call_code, wire::flag_token, 0, echo_with_code(5, "x")));
    peer.send(Kind::call, wire::flag_token | wire::flag_route, 0, ticket(6) + ByteView(route).first(size));
    expect_dropped("route of a call");
    leave();
  }
}

TEST_F(Hostile, an_answer_to_nowhere_is_dropped_and_nothing_else) {
  join();
  const auto route = wire::encode_route({99, 99, "nobody:1"});
  ASSERT_TRUE(peer.send(Kind::call_code, wire::flag_token | wire::flag_route, 0,
                        ticket(5) + route + code_section(echo) + as_bytes("x")));
  expect_still_linked();
  EXPECT_FALSE(peer.reply_to(5).has_value());
}

TEST_F(Hostile, routes_to_an_instance_that_is_gone_do_not_open_a_connection_each) {
  join();
  const auto route = wire::encode_route({99, 99, "n2"});
  const auto front = ticket(5) + route;
  ASSERT_TRUE(
      peer.send(Kind::call_code, wire::flag_token | wire::flag_route, 0, front + code_section(echo) + as_bytes("x")));
  for (int i = 0; i < 20; ++i) {
    turns();
    ASSERT_TRUE(peer.send(Kind::call, wire::flag_token | wire::flag_route, 0, front + as_bytes("x")));
  }
  turns();
  EXPECT_EQ(target->stat("executed"), 21u);
  EXPECT_LE(links(), 3u);
  others = links() - 1;
}

TEST_F(Hostile, code_that_does_not_match_its_id_is_refused_and_the_good_one_runs_then) {
  join();
  auto body = echo_with_code(5, "payload");
  body[wire::ticket_bytes + wire::code_head_bytes + 100] ^= std::byte{1};
  ASSERT_TRUE(peer.send(Kind::call_code, wire::flag_token, 0, body));
  ASSERT_TRUE(pump([&] { return peer.reply_to(5).has_value(); }));
  EXPECT_NE(peer.reply_to(5)->status, TC_OK);
  ASSERT_TRUE(peer.send(Kind::call, wire::flag_token, 0, ticket(6)));
  ASSERT_TRUE(pump([&] { return peer.reply_to(6).has_value(); }));
  EXPECT_EQ(peer.reply_to(6)->message, peer.reply_to(5)->message) << "calls of refused code are refused alike";
  ASSERT_TRUE(peer.send(Kind::call_code, wire::flag_token, 0, echo_with_code(7, "payload")));
  ASSERT_TRUE(pump([&] { return peer.reply_to(7).has_value(); }));
  EXPECT_EQ(as_text(peer.reply_to(7)->bytes), "payload");
}

TEST_F(Hostile, a_call_with_code_cut_short_anywhere_is_refused) {
  const auto whole = ticket(5) + code_section(echo);
  for (size_t size = 0; size < whole.size(); size += size < 80 ? 1 : 61) {
    join();
    peer.send(Kind::call_code, wire::flag_token, 0, ByteView(whole).first(size));
    ASSERT_TRUE(pump([&] { return peer.bye.has_value() || peer.reply_to(5).has_value(); })) << size;
    if (peer.reply_to(5)) {
      EXPECT_NE(peer.reply_to(5)->status, TC_OK) << size;
    }
    leave();
  }
}

TEST_F(Hostile, code_with_any_byte_changed_is_refused_by_status_or_by_link) {
  const auto whole = ticket(5) + code_section(echo);
  const auto bundle_end = whole.size() - wire::alignment;  // behind it there may be padding, which says nothing
  for (size_t at = wire::ticket_bytes; at < bundle_end; ++at) {
    if (at >= wire::ticket_bytes + 44 && at < wire::ticket_bytes + 48) continue;  // zero, ignored
    join();
    auto changed = whole;
    changed[at] ^= static_cast<std::byte>(1u << at % 8);
    peer.send(Kind::call_code, wire::flag_token, 0, changed);
    ASSERT_TRUE(pump([&] { return peer.bye.has_value() || peer.reply_to(5).has_value(); })) << at;
    if (peer.reply_to(5)) {
      EXPECT_NE(peer.reply_to(5)->status, TC_OK) << at;
    }
    leave();
  }
}

TEST_F(Hostile, a_number_cannot_change_its_meaning) {
  join();
  ASSERT_TRUE(peer.send(Kind::call_code, wire::flag_token, 0, echo_with_code(5, "x")));
  ASSERT_TRUE(pump([&] { return peer.reply_to(5).has_value(); }));
  peer.send(Kind::call_code, wire::flag_token, 0, ticket(6) + code_section(refuse));
  expect_dropped("when it was other code before");
  EXPECT_FALSE(peer.reply_to(6).has_value());
}

TEST_F(Hostile, code_that_nobody_asked_for_is_refused) {
  join();
  peer.send(Kind::code, 0, code_section(echo));
  expect_dropped("it sends code number 0 that nobody asked for");
}

TEST_F(Hostile, code_that_was_asked_for_is_taken_once) {
  join();
  ASSERT_TRUE(peer.send(Kind::call, wire::flag_token, 3, ticket(5)));
  ASSERT_TRUE(pump([&] { return peer.find(Kind::need) != nullptr; }));
  ASSERT_TRUE(peer.send(Kind::code, 3, code_section(echo)));
  ASSERT_TRUE(pump([&] { return peer.reply_to(5).has_value(); }));
  peer.send(Kind::code, 3, code_section(echo));
  expect_dropped("it sends code number 3 that nobody asked for");
}

TEST_F(Hostile, code_for_another_number_than_was_asked_for_is_refused) {
  join();
  ASSERT_TRUE(peer.send(Kind::call, wire::flag_token, 3, ticket(5)));
  ASSERT_TRUE(pump([&] { return peer.find(Kind::need) != nullptr; }));
  EXPECT_EQ(peer.find(Kind::need)->header.number, 3u);
  peer.send(Kind::code, 2, code_section(echo));
  expect_dropped("it sends code number 2 that nobody asked for");
}

TEST_F(Hostile, other_code_than_was_called_before_is_refused_after_an_eviction) {
  join();
  ASSERT_TRUE(peer.send(Kind::call_code, wire::flag_token, 0, echo_with_code(5, "x")));
  ASSERT_TRUE(pump([&] { return peer.reply_to(5).has_value(); }));
  target->store().evict(echo.id());
  ASSERT_TRUE(peer.send(Kind::call, wire::flag_token, 0, ticket(6)));
  ASSERT_TRUE(pump([&] { return peer.find(Kind::need) != nullptr; }));
  peer.send(Kind::code, 0, code_section(refuse));
  expect_dropped("when it was other code before");
}

TEST_F(Hostile, parked_calls_run_in_order_once_the_code_is_there_and_barriers_stay_behind_them) {
  join();
  ASSERT_TRUE(peer.send(Kind::call, wire::flag_token, 3, ticket(5) + as_bytes("one")));
  ASSERT_TRUE(peer.send(Kind::barrier, wire::barrier_ask, wire::encode_barrier(1)));
  ASSERT_TRUE(peer.send(Kind::call, wire::flag_token, 3, ticket(6) + as_bytes("two")));
  ASSERT_TRUE(pump([&] { return peer.find(Kind::need) != nullptr; }));
  turns();
  EXPECT_EQ(peer.find(Kind::barrier), nullptr);
  ASSERT_TRUE(peer.send(Kind::code, 3, code_section(echo)));
  ASSERT_TRUE(pump([&] { return peer.reply_to(6).has_value(); }));
  std::vector<Kind> order;
  for (const auto& frame : peer.frames) order.push_back(frame.header.kind);
  EXPECT_THAT(order, testing::ElementsAre(Kind::need, Kind::known, Kind::reply, Kind::barrier, Kind::reply));
}

TEST_F(Hostile, a_call_that_ran_as_soon_as_it_came_does_not_overtake_one_that_waits_for_its_code) {
  join();
  run_some_calls_of(peer);
  ASSERT_TRUE(peer.send(Kind::call, wire::flag_token, 3, ticket(6)));
  ASSERT_TRUE(pump([&] { return peer.find(Kind::need) != nullptr; }));
  ASSERT_TRUE(peer.send(Kind::call, wire::flag_token, 0, ticket(7)));
  turns();
  EXPECT_FALSE(peer.reply_to(7).has_value());
  ASSERT_TRUE(peer.send(Kind::code, 3, code_section(refuse)));
  ASSERT_TRUE(pump([&] { return peer.reply_to(7).has_value(); }));
  ASSERT_TRUE(peer.reply_to(6).has_value());
}

TEST_F(Hostile, code_that_was_evicted_is_asked_for_again_however_its_calls_came_before) {
  join();
  run_some_calls_of(peer);
  target->store().evict(echo.id());
  ASSERT_TRUE(peer.send(Kind::call, wire::flag_token, 0, ticket(6)));
  ASSERT_TRUE(pump([&] { return peer.find(Kind::need) != nullptr; }));
  ASSERT_TRUE(peer.send(Kind::code, 0, code_section(echo)));
  EXPECT_TRUE(pump([&] { return peer.reply_to(6).has_value(); }));
}

TEST_F(Hostile, whoever_sends_calls_one_by_one_gets_the_window_back_in_time) {
  join();
  run_some_calls_of(peer);
  constexpr size_t payload_bytes = 900, calls = 4096;  // several windows
  const auto ran = [&] { return target->stat("executed").value(); };
  for (const auto before = ran(); ran() < before + calls;) {
    const auto so_far = ran();
    ASSERT_TRUE(peer.send(Kind::call, 0, 0, Bytes(payload_bytes))) << so_far;
    ASSERT_TRUE(pump([&] { return ran() == so_far + 1; })) << so_far;
  }
}

TEST_F(Hostile, calls_that_waited_for_code_past_their_deadline_are_not_run) {
  join();
  ASSERT_TRUE(peer.send(Kind::call, wire::flag_token, 3, ticket(5, 1) + as_bytes("late")));
  ASSERT_TRUE(peer.send(Kind::call, wire::flag_token, 3, ticket(6, 60'000) + as_bytes("in time")));
  ASSERT_TRUE(pump([&] { return peer.find(Kind::need) != nullptr; }));
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  ASSERT_TRUE(peer.send(Kind::code, 3, code_section(echo)));
  ASSERT_TRUE(pump([&] { return peer.reply_to(6).has_value(); }));
  ASSERT_TRUE(peer.reply_to(5).has_value());
  EXPECT_EQ(peer.reply_to(5)->status, TC_ERR_TIMEOUT);
  EXPECT_EQ(as_text(peer.reply_to(6)->bytes), "in time");
  EXPECT_EQ(target->stat("executed"), 1u);
}

TEST_F(Hostile, parked_garbage_is_found_when_it_is_its_turn) {
  join();
  ASSERT_TRUE(peer.send(Kind::call, wire::flag_token, 3, ticket(5)));
  ASSERT_TRUE(peer.send(Kind::call, wire::flag_token, 3, Bytes(3)));
  ASSERT_TRUE(pump([&] { return peer.find(Kind::need) != nullptr; }));
  peer.send(Kind::code, 3, code_section(echo));
  expect_dropped("a call with a token is 3 bytes");
}

TEST_F(Hostile, a_peer_that_vanishes_with_calls_parked_leaves_nothing_behind) {
  join();
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(peer.send(Kind::call, wire::flag_token, 3, ticket(5) + as_bytes("parked")));
  ASSERT_TRUE(pump([&] { return peer.find(Kind::need) != nullptr; }));
  peer.vanish();
}

TEST_F(Hostile, what_a_peer_sent_before_it_vanished_is_run) {
  join();
  ASSERT_TRUE(peer.send(Kind::call_code, wire::flag_token, 0, echo_with_code(5, "x")));
  for (int i = 0; i < 1000; ++i) ASSERT_TRUE(peer.send(Kind::call, 0, as_bytes("x")));
  peer.vanish();
  ASSERT_TRUE(pump([&] { return links() == 1; }));
  EXPECT_EQ(target->stat("executed"), 1001u);
}

TEST_F(Hostile, asking_for_code_that_was_never_sent_is_refused) {
  join();
  peer.send(Kind::need, 9, wire::encode_need({{}, "x86_64-linux-gnu"}));
  expect_dropped("it asks for code number 9, which was never sent");
}

TEST_F(Hostile, acknowledging_code_that_was_never_sent_is_refused) {
  join();
  peer.send(Kind::known, 9, {});
  expect_dropped("it claims to know code number 9, which was never sent");
}

TEST_F(Hostile, bodies_that_are_not_what_their_kind_says_are_refused) {
  for (const auto kind : {Kind::need, Kind::code, Kind::reply, Kind::barrier, Kind::call_code})
    for (const size_t size : {0u, 1u, 7u, 15u, 17u, 20u}) {
      join();
      peer.send(kind, 0, Bytes(size, std::byte{0xee}));
      EXPECT_TRUE(pump([&] { return peer.bye.has_value(); })) << static_cast<int>(kind) << " of " << size;
      leave();
    }
}

TEST_F(Hostile, an_answer_that_nobody_waits_for_is_ignored) {
  join();
  peer.send(Kind::reply, 0, wire::encode_reply({.token = 12345}));
  peer.send(Kind::reply, 0,
            wire::encode_reply({.token = 0, .status = TC_ERR_IFUNC, .message = "a failure of nobody's call"}));
  expect_still_linked();
}

TEST_F(Hostile, a_peer_cannot_answer_a_call_that_was_made_to_another) {
  join();
  Link* link = nullptr;
  {
    const test::Background running(*client);
    link = test::connect(*target, "n2");
    others = 2;
  }
  const auto future =
      target->call(*link, *test::message(*target, "echo", "true"), 5000, Deadline::after_ms(100)).value();
  for (uint64_t token = 0; token < 1000; ++token)
    peer.send(Kind::reply, 0, wire::encode_reply({.token = token, .bytes = as_bytes("false")}));
  EXPECT_TRUE(pump([&] { return future->ready.load(); }));
  EXPECT_EQ(as_text(future->bytes), "true");
}

TEST_F(Hostile, barrier_answers_that_were_not_asked_for_are_refused) {
  for (const uint64_t barrier : {uint64_t{0}, uint64_t{1}, ~uint64_t{0}}) {
    join();
    peer.send(Kind::barrier, wire::barrier_answer, wire::encode_barrier(barrier));
    expect_dropped("when 0 were sent");
    leave();
  }
}

// ---- Fragments

TEST_F(Hostile, a_frame_beyond_the_limit_is_refused_with_its_first_piece) {
  join();
  const auto frame = wire::make_frame(Kind::call, 0, 0, Bytes(70 * 1024));
  peer.send(Kind::fragment, more_pieces, ByteView(frame).first(8));
  expect_dropped("its pieces are a frame of 71680 bytes when at most 69632 are taken");
}

TEST_F(Hostile, a_peer_that_vanishes_between_fragments_leaves_nothing_behind) {
  join();
  const auto frame = wire::make_frame(Kind::call, 0, 0, Bytes(20'000));
  ASSERT_TRUE(peer.send(Kind::fragment, more_pieces, ByteView(frame).first(10'000)));
  turns();
  EXPECT_GT(target->buffers().budget().used(), 0u);
  peer.vanish();
  EXPECT_TRUE(pump([&] { return target->buffers().budget().used() == 0; }));
}

TEST_F(Hostile, fragments_that_hold_no_frame_are_refused) {
  join();
  peer.send(Kind::fragment, last_piece, Bytes(7));
  expect_dropped("its first piece is 7 bytes");
  leave();
  join();
  peer.send(Kind::fragment, last_piece, Bytes(16));
  expect_dropped("its pieces hold no frame");
}

TEST_F(Hostile, fragments_whose_frame_has_another_length_are_refused) {
  const auto frame = wire::make_frame(Kind::call, 0, 0, Bytes(100));
  for (const auto& [mark, size] : {std::pair{last_piece, 107u}, {more_pieces, 108u}, {more_pieces, 109u}}) {
    auto sent = frame;
    sent.resize(size);
    join();
    peer.send(Kind::fragment, mark, sent);
    expect_dropped("bytes or more when the frame in them is 108");
    leave();
  }
}

TEST_F(Hostile, fragments_in_fragments_are_refused) {
  join();
  peer.send(Kind::fragment, last_piece, wire::make_frame(Kind::fragment, 0, 1, wire::make_frame(Kind::call, 0, 0, {})));
  expect_dropped("its pieces hold no frame");
}

TEST_F(Hostile, kinds_without_a_place_among_calls_are_refused_in_fragments_as_well) {
  for (const auto kind : {static_cast<Kind>(8), static_cast<Kind>(12), Kind::pad, static_cast<Kind>(15)}) {
    join();
    peer.send(Kind::fragment, last_piece, wire::make_frame(kind, 0, 1, Bytes(8)));
    expect_dropped("has no place among calls");
    leave();
  }
}

TEST_F(Hostile, a_fragment_with_an_unknown_mark_is_refused) {
  join();
  peer.send(Kind::fragment, 2, Bytes(8));
  expect_dropped("a fragment is marked 2");
}

// ---- The other way round: the node is the one that calls

TEST_F(Hostile, a_target_that_never_greets_fails_the_connection_at_its_deadline) {
  RawPeer mute(net.network);
  mute.answers = false;
  mute.listen("mute");
  const auto link = client->connect("mute", Deadline::after_ms(50));
  ASSERT_FALSE(link);
  EXPECT_EQ(link.error().code, TC_ERR_TIMEOUT);
}

}  // namespace
}  // namespace tc::node
