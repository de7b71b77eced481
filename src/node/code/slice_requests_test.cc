// SPDX-License-Identifier: Apache-2.0
//
// Requests for the slice of another kind of processor, with a source or a target made by hand.
#include "node/testing/slices.h"

namespace tc::node {
namespace {

using test::arm;
using test::Background;
using test::for_three;
using test::native;
using test::RawPeer;
using test::riscv;
using test::Slices;
using test::triple;
using test::operator+;
using testing::HasSubstr;
using wire::Kind;

TEST_F(Slices, the_question_names_code_and_processor_and_its_answer_lets_the_call_go_on) {
  make_nodes({arm, riscv});
  RawPeer raw(net.network);
  join(raw);
  const auto bundle = for_three("travel");
  const auto need = send_and_be_asked(raw, bundle);
  EXPECT_EQ(need.id, bundle.id());
  EXPECT_EQ(need.triple, riscv);
  EXPECT_EQ(nodes[1]->stat("executed").value(), 0u) << "the call waits";
  raw.send(Kind::code, wire::flag_for_another, 0, section_for(bundle, riscv));
  EXPECT_TRUE(run_until(raw, [&] { return nodes[1]->stat("executed").value() == 1; }));
}

TEST_F(Slices, a_send_behind_a_call_that_waits_is_told_at_the_next_flush_why_it_did_not_leave) {
  make_nodes({arm, riscv});
  RawPeer raw(net.network);
  join(raw);
  const auto bundle = for_three("travel");
  (void)send_and_be_asked(raw, bundle);
  auto* const link = nodes[0]->links().at("n1").value();
  const char payload = 'x';
  const auto append = nodes[0]->register_bundle(for_three("append", riscv)).value();
  const auto message = source::Message::create(append, &payload, 1, 1 << 20).value();
  ASSERT_TRUE(nodes[0]->send(*link, *message, false, Deadline::after_ms(0)));
  raw.send(Kind::code, wire::flag_for_another, 0, section_for(bundle, riscv));
  ASSERT_TRUE(run_until(raw, [&] { return nodes[1]->stat("executed").value() == 1; }));
  const Background other(*nodes[1]);
  const auto flushed = link->flush(Deadline::after_ms(8000));
  ASSERT_FALSE(flushed);
  EXPECT_EQ(flushed.error().code, TC_ERR_NO_SLICE) << flushed.error().message;
  EXPECT_TRUE(link->flush(Deadline::after_ms(8000))) << "it is told once";
}

TEST_F(Slices, a_source_that_has_no_such_slice_fails_the_call_with_its_name) {
  make_nodes({arm, riscv});
  RawPeer raw(net.network);
  join(raw);
  const auto bundle = for_three("travel");
  (void)send_and_be_asked(raw, bundle);
  raw.send(Kind::code, wire::flag_for_another, 0, section_for(bundle, nullptr));
  ASSERT_TRUE(run_until(raw, [&] { return raw.reply_to(55).has_value(); }));
  EXPECT_EQ(raw.reply_to(55)->status, TC_ERR_NO_SLICE);
  EXPECT_THAT(raw.reply_to(55)->message, HasSubstr("no slice of ifunc 'travel' for riscv64-unknown-linux-gnu"));
  EXPECT_THAT(raw.reply_to(55)->message, HasSubstr("node 7 (raw)"));
}

TEST_F(Slices, a_slice_that_is_not_what_its_hash_says_fails_the_call_and_not_the_link) {
  make_nodes({arm, riscv});
  RawPeer raw(net.network);
  join(raw);
  const auto bundle = for_three("travel");
  (void)send_and_be_asked(raw, bundle);
  auto section = section_for(bundle, riscv);
  section[section.size() - 40] ^= std::byte{1};
  raw.send(Kind::code, wire::flag_for_another, 0, section);
  ASSERT_TRUE(run_until(raw, [&] { return raw.reply_to(55).has_value(); }));
  EXPECT_EQ(raw.reply_to(55)->status, TC_ERR_NO_SLICE);
  EXPECT_FALSE(raw.lost);
}

TEST_F(Slices, a_source_that_dies_while_it_is_asked_fails_what_waited) {
  make_nodes({arm, riscv});
  RawPeer raw(net.network);
  join(raw);
  (void)send_and_be_asked(raw, for_three("travel"));
  raw.vanish();
  EXPECT_TRUE(run_until(raw, [&] { return nodes[0]->stat("failures").value() == 1; }));
}

// Calls that nodes[0] cannot forward yet, 100 ms before their deadline where they have one. The clock stands.
class CallsThatCannotLeaveYet : public Slices {
 protected:
  bool drive(size_t driven, const std::function<bool()>& done) {
    for (int rounds = 0; rounds < 10'000 && !done(); ++rounds) {
      raw.progress();
      for (size_t i = 0; i < driven; ++i) nodes[i]->wait(Deadline::after_ms(0));
    }
    return done();
  }
  bool drive_all(const std::function<bool()>& done) { return drive(nodes.size(), done); }
  void send(ByteView code) {
    test::Travel payload;
    payload.hops_to_go = 1;
    const std::string_view bytes(reinterpret_cast<const char*>(&payload), sizeof payload);
    raw.send(Kind::call_code, wire::flag_call_header, 0, test::call_header(55, deadline_ms) + code + as_bytes(bytes));
  }
  // nodes[1] can be sent the code `wait_ms` after the call came.
  void wait_for_slices(uint32_t wait_ms) {
    make_nodes({arm, riscv});
    join(raw);
    clock.emplace();
    const auto bundle = for_three("travel");
    send(section_for(bundle, arm));
    ASSERT_TRUE(drive_all([&] { return raw.find(Kind::need) != nullptr; }));
    test::let_pass(std::chrono::milliseconds(wait_ms));
    raw.send(Kind::code, wire::flag_for_another, 0, section_for(bundle, riscv));
  }
  // nodes[1] answers to the greeting after that time.
  void wait_for_greeting(uint32_t wait_ms) {
    make_nodes({arm, riscv});
    join(raw);
    clock.emplace();
    const auto bundle = for_three("travel");
    const auto bytes = bundle.bytes();
    Bytes section;
    wire::append_code(section, {bundle.id(), bundle.carried(), static_cast<uint32_t>(bytes.size())}, bytes);
    send(section);
    ASSERT_TRUE(drive(1, [&] { return nodes[0]->stat("executed").value() == 1; }));
    test::let_pass(std::chrono::milliseconds(wait_ms));
  }
  void expect_sent() {
    EXPECT_TRUE(drive_all([&] { return nodes[1]->stat("executed").value() == 1; }));
    ASSERT_TRUE(drive_all([&] { return raw.reply_to(55).has_value(); }));
    EXPECT_EQ(raw.reply_to(55)->status, TC_OK) << raw.reply_to(55)->message;
  }
  void expect_too_late(const std::string& why) {
    ASSERT_TRUE(drive_all([&] { return raw.reply_to(55).has_value(); }));
    EXPECT_EQ(raw.reply_to(55)->status, TC_ERR_TIMEOUT);
    EXPECT_THAT(raw.reply_to(55)->message, HasSubstr(why));
    EXPECT_EQ(nodes[1]->stat("executed").value(), 0u);
  }

  uint32_t deadline_ms = 100;
  RawPeer raw{net.network};
  std::optional<test::StoppedClock> clock;
};

TEST_F(CallsThatCannotLeaveYet, leave_when_their_slices_come_as_the_deadline_ends) {
  wait_for_slices(deadline_ms);
  expect_sent();
}

TEST_F(CallsThatCannotLeaveYet, are_refused_when_their_slices_come_later_and_are_told_for_what_they_waited) {
  wait_for_slices(deadline_ms + 1);
  expect_too_late("could be sent its code after 101 ms when the call's deadline was 100 ms");
}

TEST_F(CallsThatCannotLeaveYet, have_all_the_time_when_they_have_no_deadline) {
  deadline_ms = 0;
  wait_for_slices(5'000);
  expect_sent();
}

TEST_F(CallsThatCannotLeaveYet, leave_when_the_peer_answers_as_the_deadline_ends) {
  wait_for_greeting(deadline_ms);
  expect_sent();
}

TEST_F(CallsThatCannotLeaveYet, are_refused_when_the_peer_answers_later) {
  wait_for_greeting(deadline_ms + 1);
  expect_too_late("answered after 101 ms when the call's deadline was 100 ms");
}

// A node that forwarded code to one kind of processor and is asked for the slice of another: it asks its own source once.
TEST_F(Slices, a_slice_that_came_for_another_is_at_hand_for_the_next_that_asks) {
  RawPeer raw(net.network);  // a node of the cluster that forwards what it gets
  raw.says.triple = arm;
  raw.listen("raw");
  nodes.push_back(net.make(0, [](Config& config) {
    config.cluster = {"n0", "raw"};
    config.code.triple = triple(native);
  }));
  auto client = net.make(99);
  const auto bundle = for_three("travel");
  const auto message = travel(*client, bundle, 1);
  Link* link = nullptr;
  {
    const Background running(*nodes[0]);
    link = test::connect(*client, "n0");
  }
  const auto future = client->call(*link, *message, 0, Deadline::after_ms(1000)).value();
  const auto run_both_until = [&](const std::function<bool()>& done) {
    return run_until(raw, [&] { return client->poll(), done(); });
  };
  ASSERT_TRUE(run_both_until([&] { return raw.find(Kind::call_code) != nullptr; }));
  EXPECT_EQ(asked(*nodes[0]), 1u);
  for (int again = 0; again < 2; ++again) {
    raw.send(Kind::need, wire::flag_for_another, 0, wire::encode_need({bundle.id(), riscv}));
    ASSERT_TRUE(run_both_until([&] { return raw.find(Kind::code) != nullptr; }));
    EXPECT_EQ(raw.find(Kind::code)->body, section_for(bundle, riscv));
    raw.frames.clear();
    EXPECT_EQ(asked(*nodes[0]), 2u);
  }
}

TEST_F(Slices, slices_that_nobody_asked_for_break_the_link) {
  make_nodes({arm, riscv});
  RawPeer raw(net.network);
  join(raw);
  raw.send(Kind::code, wire::flag_for_another, 0, section_for(for_three("travel"), riscv));
  ASSERT_TRUE(run_until(raw, [&] { return raw.bye.has_value(); }));
  EXPECT_THAT(raw.bye->reason, HasSubstr("which nobody asked for"));
}

TEST_F(Slices, a_question_for_code_that_was_never_sent_breaks_the_link) {
  make_nodes({arm, riscv});
  RawPeer raw(net.network);
  join(raw);
  raw.send(Kind::need, wire::flag_for_another, 3, wire::encode_need({for_three("travel").id(), riscv}));
  ASSERT_TRUE(run_until(raw, [&] { return raw.bye.has_value(); }));
  EXPECT_THAT(raw.bye->reason, HasSubstr("code number 3"));
}

}  // namespace
}  // namespace tc::node
