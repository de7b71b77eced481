// SPDX-License-Identifier: Apache-2.0
//
// A peer that sends malformed or untrue frames. Frames with code are in hostile_code_test.cc.
#include "node/testing/hostile.h"

namespace tc::node::test {
namespace {

using wire::Kind;

// ---- A greeting or a disconnect message that is wrong, and a target that never greets

TEST_F(Hostile, another_protocol_version_is_told_both_versions) {
  auto hello = RawPeer::hello();
  hello.protocol = wire::protocol_version + 1;
  // A later version may have more fields: the version stands in front of all that could differ.
  peer.connect("n1", wire::encode_hello(hello) + as_bytes("and more"));
  expect_refused(TC_ERR_VERSION, "the peer speaks protocol version 9 when this build speaks version 8");
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
  EXPECT_FALSE(peer.send(Kind::call_code, wire::flag_call_header, 0, echo_with_code(5, "early")));
  expect_refused(TC_ERR_VERSION, "has ifunc ABI 99");
  EXPECT_EQ(target->stat("code-loads"), 0u);
}

TEST_F(Hostile, words_of_goodbye_cannot_steer_a_terminal) {
  join();
  peer.send(Kind::disconnect, 0, wire::encode_disconnect({TC_ERR_DENIED, "\x1b[2Jgone"}));
  ASSERT_TRUE(run_until([&] { return peer.lost.has_value(); }));
  EXPECT_EQ(target->stat("dropped-links"), 1u);
}

TEST_F(Hostile, a_target_that_never_greets_fails_the_connection_at_its_deadline) {
  RawPeer mute(net.network);
  mute.answers = false;
  mute.listen("mute");
  const auto link = client->connect("mute", Deadline::after_ms(50));
  ASSERT_FALSE(link);
  EXPECT_EQ(link.error().code, TC_ERR_TIMEOUT);
}

// ---- Fragments that hold no frame, too much of one, or another frame than they say

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
  EXPECT_TRUE(run_until([&] { return target->buffers().budget().used() == 0; }));
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
  for (const auto kind : {Kind::pad, static_cast<Kind>(15)}) {
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

// ---- Calls, replies and barriers that are malformed or belong to nobody

TEST_F(Hostile, a_kind_that_has_no_place_among_calls_is_refused) {
  join();
  peer.send(static_cast<Kind>(15), 0, Bytes(16));
  expect_dropped("a frame of kind 15 has no place among calls");
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
    peer.send(kind, wire::flag_call_header, 1u << 20, kind == Kind::call ? call_header(5) : echo_with_code(5, "x"));
    expect_dropped("a call has number 1048576 when numbers end at 1048575");
    leave();
  }
}

class HostileToASmallNode : public Hostile {
 protected:
  HostileToASmallNode() : Hostile(4096) {}
};

TEST_F(HostileToASmallNode, a_call_that_is_longer_than_the_node_takes_is_refused_however_it_comes) {
  const auto with_token = [](size_t size) { return call_header(9) + Bytes(size - wire::call_header_bytes); };
  const auto plain = [&](size_t size) { return peer.send(Kind::call, 0, Bytes(size)); };
  const auto call = [&](size_t size) { return peer.send(Kind::call, wire::flag_call_header, 0, with_token(size)); };
  const auto with_code = [&](size_t size) {
    const auto front = echo_with_code(9, "");
    return peer.send(Kind::call_code, wire::flag_call_header, 0, front + Bytes(size - front.size()));
  };
  const auto in_pieces = [&](size_t size) {
    const auto frame = wire::make_frame(Kind::call, wire::flag_call_header, 0, with_token(size));
    return peer.send(Kind::fragment, more_pieces, ByteView(frame).first(3000)) &&
           peer.send(Kind::fragment, last_piece, ByteView(frame).subspan(3000));
  };
  for (const auto& send : std::initializer_list<std::function<bool(size_t)>>{plain, call, with_code, in_pieces}) {
    join();
    run_some_calls_of(peer);
    const auto ran = target->executed();
    ASSERT_TRUE(send(4096));
    EXPECT_TRUE(run_until([&] { return target->executed() == ran + 1; }));
    expect_still_linked();
    ASSERT_TRUE(send(4097));
    expect_dropped("a call is 4097 bytes when at most 4096 are taken (max-message)");
    leave();
  }
}

TEST_F(Hostile, a_call_shorter_than_its_call_header_is_refused) {
  join();
  ASSERT_TRUE(peer.send(Kind::call_code, wire::flag_call_header, 0, echo_with_code(5, "x")));
  peer.send(Kind::call, wire::flag_call_header, 0, Bytes(15));
  expect_dropped("a call with a token is 15 bytes");
}

TEST_F(Hostile, a_return_address_cut_short_anywhere_is_refused) {
  const auto return_address = wire::encode_return_address({4711, 7, "somewhere:1"});
  for (size_t size = 0; size < return_address.size(); ++size) {
    join();
    ASSERT_TRUE(peer.send(Kind::call_code, wire::flag_call_header, 0, echo_with_code(5, "x")));
    peer.send(Kind::call, wire::flag_call_header | wire::flag_return_address, 0,
              call_header(6) + ByteView(return_address).first(size));
    expect_dropped("return address of a call");
    leave();
  }
}

TEST_F(Hostile, an_answer_to_nowhere_is_dropped_and_nothing_else) {
  join();
  const auto return_address = wire::encode_return_address({99, 99, "nobody:1"});
  ASSERT_TRUE(peer.send(Kind::call_code, wire::flag_call_header | wire::flag_return_address, 0,
                        call_header(5) + return_address + code_section(echo) + as_bytes("x")));
  expect_still_linked();
  EXPECT_FALSE(peer.reply_to(5).has_value());
}

TEST_F(Hostile, routes_to_an_instance_that_is_gone_do_not_open_a_connection_each) {
  join();
  const auto return_address = wire::encode_return_address({99, 99, "n2"});
  const auto front = call_header(5) + return_address;
  ASSERT_TRUE(peer.send(Kind::call_code, wire::flag_call_header | wire::flag_return_address, 0,
                        front + code_section(echo) + as_bytes("x")));
  for (int i = 0; i < 20; ++i) {
    turns();
    ASSERT_TRUE(peer.send(Kind::call, wire::flag_call_header | wire::flag_return_address, 0, front + as_bytes("x")));
  }
  EXPECT_TRUE(run_until([&] { return target->executed() == 21; }));
  EXPECT_LE(links(), 3u);
  others = links() - 1;
}

TEST_F(Hostile, whoever_sends_calls_one_by_one_gets_the_window_back_in_time) {
  join();
  run_some_calls_of(peer);
  constexpr size_t payload_bytes = 900, calls = 4096;  // several windows
  const auto ran = [&] { return target->stat("executed").value(); };
  for (const auto before = ran(); ran() < before + calls;) {
    const auto so_far = ran();
    ASSERT_TRUE(peer.send(Kind::call, 0, 0, Bytes(payload_bytes))) << so_far;
    ASSERT_TRUE(run_until([&] { return ran() == so_far + 1; })) << so_far;
  }
}

TEST_F(Hostile, what_a_peer_sent_before_it_vanished_is_run) {
  join();
  ASSERT_TRUE(peer.send(Kind::call_code, wire::flag_call_header, 0, echo_with_code(5, "x")));
  for (int i = 0; i < 1000; ++i) ASSERT_TRUE(peer.send(Kind::call, 0, as_bytes("x")));
  peer.vanish();
  ASSERT_TRUE(run_until([&] { return links() == 1; }));
  EXPECT_EQ(target->stat("executed"), 1001u);
}

TEST_F(Hostile, bodies_that_are_not_what_their_kind_says_are_refused) {
  for (const auto kind : {Kind::need, Kind::code, Kind::reply, Kind::barrier, Kind::call_code})
    for (const size_t size : {0u, 1u, 7u, 15u, 17u, 20u}) {
      join();
      peer.send(kind, 0, Bytes(size, std::byte{0xee}));
      EXPECT_TRUE(run_until([&] { return peer.bye.has_value(); })) << static_cast<int>(kind) << " of " << size;
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
    const Background running(*client);
    link = test::connect(*target, "n2");
    others = 2;
  }
  const auto future =
      target->call(*link, *test::message(*target, "echo", "true"), 5000, Deadline::after_ms(100)).value();
  for (uint64_t token = 0; token < 1000; ++token)
    peer.send(Kind::reply, 0, wire::encode_reply({.token = token, .bytes = as_bytes("false")}));
  EXPECT_TRUE(run_until([&] { return future->ready.load(); }));
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

TEST_F(Hostile, whoever_cancels_calls_that_it_did_not_make_cancels_none) {
  join();
  run_some_calls_of(peer);
  const auto future =
      client->call(*good_link, *test::message(*client, "echo", "mine"), 5000, Deadline::after_ms(100)).value();
  for (uint64_t token = 0; token < 10'000; ++token) peer.send(Kind::cancel, 0, wire::encode_cancel(token));
  peer.send(Kind::cancel, 0, wire::encode_cancel(future->token));
  EXPECT_TRUE(run_until([&] { return future->ready.load(); }));
  EXPECT_EQ(as_text(future->bytes), "mine");
  ASSERT_TRUE(peer.send(Kind::call, wire::flag_call_header, 0, call_header(3)));  // a token that it canceled before
  peer.frames.clear();
  EXPECT_TRUE(run_until([&] { return peer.reply_to(3).has_value(); }));
  EXPECT_EQ(peer.reply_to(3)->status, TC_OK);
  expect_still_linked();
}

TEST_F(Hostile, cancel_frames_that_are_cut_off_or_too_long_are_refused) {
  for (const size_t size : {size_t{0}, size_t{7}, size_t{9}, size_t{1000}}) {
    join();
    peer.send(Kind::cancel, 0, Bytes(size));
    expect_dropped("cancel frame");
    leave();
  }
}

// ---- Cluster events that are wrong or untrue, and snapshots that a peer asks for

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
  peer.send(Kind::call, wire::flag_call_header, 0, call_header(77));
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
}  // namespace tc::node::test
