// SPDX-License-Identifier: Apache-2.0
//
// A peer that sends code that is damaged or was not requested, and calls whose code never comes.
#include "node/testing/hostile.h"

namespace tc::node::test {
namespace {

using wire::Kind;

// ---- Code that is damaged, other code than before, or code that the node did not ask for

TEST_F(Hostile, code_that_does_not_match_its_id_is_refused_and_the_good_one_runs_then) {
  join();
  auto body = echo_with_code(5, "payload");
  body[wire::call_header_bytes + wire::code_head_bytes + 100] ^= std::byte{1};
  ASSERT_TRUE(peer.send(Kind::call_code, wire::flag_call_header, 0, body));
  ASSERT_TRUE(run_until([&] { return peer.reply_to(5).has_value(); }));
  EXPECT_NE(peer.reply_to(5)->status, TC_OK);
  ASSERT_TRUE(peer.send(Kind::call, wire::flag_call_header, 0, call_header(6)));
  ASSERT_TRUE(run_until([&] { return peer.reply_to(6).has_value(); }));
  EXPECT_EQ(peer.reply_to(6)->message, peer.reply_to(5)->message) << "calls of refused code are refused alike";
  ASSERT_TRUE(peer.send(Kind::call_code, wire::flag_call_header, 0, echo_with_code(7, "payload")));
  ASSERT_TRUE(run_until([&] { return peer.reply_to(7).has_value(); }));
  EXPECT_EQ(as_text(peer.reply_to(7)->bytes), "payload");
}

TEST_F(Hostile, a_call_with_code_cut_short_anywhere_is_refused) {
  const auto whole = call_header(5) + code_section(echo);
  for (size_t size = 0; size < whole.size(); size += size < 80 ? 1 : 61) {
    join();
    peer.send(Kind::call_code, wire::flag_call_header, 0, ByteView(whole).first(size));
    ASSERT_TRUE(run_until([&] { return peer.bye.has_value() || peer.reply_to(5).has_value(); })) << size;
    if (peer.reply_to(5)) {
      EXPECT_NE(peer.reply_to(5)->status, TC_OK) << size;
    }
    leave();
  }
}

TEST_F(Hostile, code_with_any_byte_changed_is_refused_by_status_or_by_link) {
  const auto whole = call_header(5) + code_section(echo);
  const auto bundle_end = whole.size() - wire::alignment;  // behind it there may be padding, which says nothing
  for (size_t at = wire::call_header_bytes; at < bundle_end; ++at) {
    if (at >= wire::call_header_bytes + 44 && at < wire::call_header_bytes + 48) continue;  // zero, ignored
    join();
    auto changed = whole;
    changed[at] ^= static_cast<std::byte>(1u << at % 8);
    peer.send(Kind::call_code, wire::flag_call_header, 0, changed);
    ASSERT_TRUE(run_until([&] { return peer.bye.has_value() || peer.reply_to(5).has_value(); })) << at;
    if (peer.reply_to(5)) {
      EXPECT_NE(peer.reply_to(5)->status, TC_OK) << at;
    }
    leave();
  }
}

TEST_F(Hostile, a_number_cannot_change_its_meaning) {
  join();
  ASSERT_TRUE(peer.send(Kind::call_code, wire::flag_call_header, 0, echo_with_code(5, "x")));
  ASSERT_TRUE(run_until([&] { return peer.reply_to(5).has_value(); }));
  peer.send(Kind::call_code, wire::flag_call_header, 0, call_header(6) + code_section(refuse));
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
  ASSERT_TRUE(peer.send(Kind::call, wire::flag_call_header, 3, call_header(5)));
  ASSERT_TRUE(run_until([&] { return peer.find(Kind::need) != nullptr; }));
  ASSERT_TRUE(peer.send(Kind::code, 3, code_section(echo)));
  ASSERT_TRUE(run_until([&] { return peer.reply_to(5).has_value(); }));
  peer.send(Kind::code, 3, code_section(echo));
  expect_dropped("it sends code number 3 that nobody asked for");
}

TEST_F(Hostile, code_for_another_number_than_was_asked_for_is_refused) {
  join();
  ASSERT_TRUE(peer.send(Kind::call, wire::flag_call_header, 3, call_header(5)));
  ASSERT_TRUE(run_until([&] { return peer.find(Kind::need) != nullptr; }));
  EXPECT_EQ(peer.find(Kind::need)->header.number, 3u);
  peer.send(Kind::code, 2, code_section(echo));
  expect_dropped("it sends code number 2 that nobody asked for");
}

TEST_F(Hostile, other_code_than_was_called_before_is_refused_after_an_eviction) {
  join();
  ASSERT_TRUE(peer.send(Kind::call_code, wire::flag_call_header, 0, echo_with_code(5, "x")));
  ASSERT_TRUE(run_until([&] { return peer.reply_to(5).has_value(); }));
  target->store().evict(echo.id());
  ASSERT_TRUE(peer.send(Kind::call, wire::flag_call_header, 0, call_header(6)));
  ASSERT_TRUE(run_until([&] { return peer.find(Kind::need) != nullptr; }));
  peer.send(Kind::code, 0, code_section(refuse));
  expect_dropped("when it was other code before");
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

// ---- Calls that wait for their code: their order, their deadlines, and what is left when the peer is lost

TEST_F(Hostile, waiting_calls_run_in_order_once_the_code_is_there_and_barriers_stay_behind_them) {
  join();
  ASSERT_TRUE(peer.send(Kind::call, wire::flag_call_header, 3, call_header(5) + as_bytes("one")));
  ASSERT_TRUE(peer.send(Kind::barrier, wire::barrier_ask, wire::encode_barrier(1)));
  ASSERT_TRUE(peer.send(Kind::call, wire::flag_call_header, 3, call_header(6) + as_bytes("two")));
  ASSERT_TRUE(run_until([&] { return peer.find(Kind::need) != nullptr; }));
  turns();
  EXPECT_EQ(peer.find(Kind::barrier), nullptr);
  ASSERT_TRUE(peer.send(Kind::code, 3, code_section(echo)));
  ASSERT_TRUE(run_until([&] { return peer.reply_to(6).has_value(); }));
  std::vector<Kind> order;
  for (const auto& frame : peer.frames) order.push_back(frame.header.kind);
  EXPECT_THAT(order, testing::ElementsAre(Kind::need, Kind::known, Kind::reply, Kind::barrier, Kind::reply));
}

TEST_F(Hostile, a_call_that_ran_as_soon_as_it_came_does_not_overtake_one_that_waits_for_its_code) {
  join();
  run_some_calls_of(peer);
  ASSERT_TRUE(peer.send(Kind::call, wire::flag_call_header, 3, call_header(6)));
  ASSERT_TRUE(run_until([&] { return peer.find(Kind::need) != nullptr; }));
  ASSERT_TRUE(peer.send(Kind::call, wire::flag_call_header, 0, call_header(7)));
  turns();
  EXPECT_FALSE(peer.reply_to(7).has_value());
  ASSERT_TRUE(peer.send(Kind::code, 3, code_section(refuse)));
  ASSERT_TRUE(run_until([&] { return peer.reply_to(7).has_value(); }));
  ASSERT_TRUE(peer.reply_to(6).has_value());
}

TEST_F(Hostile, code_that_was_evicted_is_asked_for_again_however_its_calls_came_before) {
  join();
  run_some_calls_of(peer);
  target->store().evict(echo.id());
  ASSERT_TRUE(peer.send(Kind::call, wire::flag_call_header, 0, call_header(6)));
  ASSERT_TRUE(run_until([&] { return peer.find(Kind::need) != nullptr; }));
  ASSERT_TRUE(peer.send(Kind::code, 0, code_section(echo)));
  EXPECT_TRUE(run_until([&] { return peer.reply_to(6).has_value(); }));
}

TEST_F(Hostile, calls_that_waited_for_code_past_their_deadline_are_not_run) {
  join();
  ASSERT_TRUE(peer.send(Kind::call, wire::flag_call_header, 3, call_header(5, 1) + as_bytes("late")));
  ASSERT_TRUE(peer.send(Kind::call, wire::flag_call_header, 3, call_header(6, 60'000) + as_bytes("in time")));
  ASSERT_TRUE(run_until([&] { return peer.find(Kind::need) != nullptr; }));
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  ASSERT_TRUE(peer.send(Kind::code, 3, code_section(echo)));
  ASSERT_TRUE(run_until([&] { return peer.reply_to(6).has_value(); }));
  ASSERT_TRUE(peer.reply_to(5).has_value());
  EXPECT_EQ(peer.reply_to(5)->status, TC_ERR_TIMEOUT);
  EXPECT_EQ(as_text(peer.reply_to(6)->bytes), "in time");
  EXPECT_EQ(target->stat("executed"), 1u);
}

// A peer that ends cannot be asked: the calls behind would be lost.
TEST_F(Hostile, the_code_of_a_call_that_waited_past_its_deadline_or_was_canceled_is_kept_for_those_behind) {
  for (const bool cancels : {false, true}) {
    SCOPED_TRACE(cancels);
    join();
    ASSERT_TRUE(peer.send(Kind::call, wire::flag_call_header, 3, call_header(5)));
    ASSERT_TRUE(peer.send(Kind::call_code, wire::flag_call_header, 4,
                          call_header(6, cancels ? 60'000 : 1) + code_section(echo) + as_bytes("not run")));
    ASSERT_TRUE(peer.send(Kind::call, wire::flag_call_header, 4, call_header(7) + as_bytes("behind")));
    if (cancels) {
      ASSERT_TRUE(peer.send(Kind::cancel, 0, wire::encode_cancel(6)));
    }
    ASSERT_TRUE(run_until([&] { return peer.find(Kind::need) != nullptr; }));
    turns();
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    ASSERT_TRUE(peer.send(Kind::code, 3, code_section(refuse)));
    ASSERT_TRUE(run_until([&] { return peer.reply_to(7).has_value() && peer.reply_to(6).has_value(); }));
    EXPECT_EQ(peer.reply_to(6)->status, cancels ? TC_ERR_CANCELED : TC_ERR_TIMEOUT);
    EXPECT_EQ(as_text(peer.reply_to(7)->bytes), "behind");
    EXPECT_EQ(std::ranges::count(peer.frames, Kind::need, [](const auto& one) { return one.header.kind; }), 1)
        << "for number 3, and no other";
    leave();
  }
}

TEST_F(Hostile, waiting_garbage_is_found_when_it_is_its_turn) {
  join();
  ASSERT_TRUE(peer.send(Kind::call, wire::flag_call_header, 3, call_header(5)));
  ASSERT_TRUE(peer.send(Kind::call, wire::flag_call_header, 3, Bytes(3)));
  ASSERT_TRUE(run_until([&] { return peer.find(Kind::need) != nullptr; }));
  peer.send(Kind::code, 3, code_section(echo));
  expect_dropped("a call with a token is 3 bytes");
}

TEST_F(Hostile, a_peer_that_vanishes_with_waiting_calls_leaves_nothing_behind) {
  join();
  for (int i = 0; i < 100; ++i)
    ASSERT_TRUE(peer.send(Kind::call, wire::flag_call_header, 3, call_header(5) + as_bytes("waiting")));
  ASSERT_TRUE(run_until([&] { return peer.find(Kind::need) != nullptr; }));
  peer.vanish();
}

TEST_F(Hostile, only_so_much_of_a_peer_may_wait_for_code) {
  join();
  constexpr size_t limit = size_t{64} << 20, size = 30'000;
  const auto call = call_header(9) + Bytes(size);
  for (size_t i = 0; i < limit / size; ++i)
    ASSERT_TRUE(run_until([&] { return peer.send(Kind::call, wire::flag_call_header, 3, call); }));
  ASSERT_TRUE(run_until([&] { return peer.reply_to(9).has_value(); }));
  EXPECT_EQ(peer.reply_to(9)->status, TC_ERR_LIMIT);
  EXPECT_THAT(peer.reply_to(9)->message, testing::HasSubstr("bytes of calls wait for code"));
}

class WithoutMemory : public Hostile {
 protected:
  WithoutMemory() : Hostile([](Config& config) { config.message_memory = 1000; }) {}
};

TEST_F(WithoutMemory, code_of_a_call_that_may_not_wait_is_not_asked_for) {
  join();
  ASSERT_TRUE(peer.send(Kind::call, wire::flag_call_header, 3, call_header(5) + Bytes(2000)));
  ASSERT_TRUE(run_until([&] { return peer.reply_to(5).has_value(); }));
  EXPECT_EQ(peer.reply_to(5)->status, TC_ERR_LIMIT);
  EXPECT_EQ(peer.find(Kind::need), nullptr) << "the code would come when nobody needs it, and break the protocol";
  ASSERT_TRUE(peer.send(Kind::call, wire::flag_call_header, 3, call_header(6)));
  ASSERT_TRUE(run_until([&] { return peer.find(Kind::need) != nullptr; }));
  ASSERT_TRUE(peer.send(Kind::code, 3, code_section(echo)));
  ASSERT_TRUE(run_until([&] { return peer.reply_to(6).has_value(); }));
  EXPECT_EQ(peer.reply_to(6)->status, TC_OK);
}

}  // namespace
}  // namespace tc::node::test
