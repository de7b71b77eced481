// SPDX-License-Identifier: Apache-2.0
//
// A peer that sends damaged code, other code than before, or code that the node did not ask for.
#include "node/testing/hostile.h"

namespace tc::node {
namespace {

using test::call_header;
using test::code_section;
using test::Hostile;
using test::operator+;
using wire::Kind;

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

}  // namespace
}  // namespace tc::node
