// SPDX-License-Identifier: Apache-2.0
//
// A peer whose calls, replies and barriers are malformed or belong to nobody.
#include "node/testing/hostile.h"

namespace tc::node {
namespace {

using test::call_header;
using test::code_section;
using test::Hostile;
using test::operator+;
using wire::Kind;

TEST_F(Hostile, kinds_that_have_no_place_among_calls_are_refused) {
  for (const auto kind : {static_cast<Kind>(8), static_cast<Kind>(12), static_cast<Kind>(15)}) {
    join();
    peer.send(kind, 0, Bytes(16));
    expect_dropped(fmt::format("a frame of kind {} has no place among calls", static_cast<int>(kind)));
    leave();
  }
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
    const auto ran = target->executor().executed();
    ASSERT_TRUE(send(4096));
    EXPECT_TRUE(run_until([&] { return target->executor().executed() == ran + 1; }));
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
  turns();
  EXPECT_EQ(target->stat("executed"), 21u);
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
    const test::Background running(*client);
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

}  // namespace
}  // namespace tc::node
