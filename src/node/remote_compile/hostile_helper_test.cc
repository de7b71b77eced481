// SPDX-License-Identifier: Apache-2.0
//
// The frames between a node and its helper, where one of the two is a peer made by hand.
#include "node/testing/compile_at.h"

namespace tc::node {
namespace {

// ---- A helper made by hand

TEST_F(CompileAt, the_question_names_code_and_processor_and_its_answer_lets_the_call_go_on) {
  small();
  const auto bundle = bitcode_only("echo");
  const auto question = ask(bundle);
  EXPECT_EQ(question.head.id, bundle.id());
  EXPECT_EQ(question.triple, TargetTriple::host().text);
  EXPECT_FALSE(question.cpu.empty());
  const auto sent = Bundle::read_carried(question.bundle, question.head.carried, question.head.id);
  ASSERT_TRUE(sent);
  EXPECT_TRUE(sent->find(SliceRole::target, SliceForm::bitcode, TargetTriple::host()));
  EXPECT_FALSE(caller.reply_to(55)) << "the call waits";
  answer(question.token, TC_OK, "", object_of("echo"));
  ASSERT_TRUE(pump([&] { return caller.reply_to(55).has_value(); }));
  EXPECT_EQ(caller.reply_to(55)->status, TC_OK) << caller.reply_to(55)->message;
}

TEST_F(CompileAt, a_call_whose_code_is_being_compiled_runs_although_its_caller_has_left) {
  auto& node = small();
  const auto token = ask(bitcode_only("echo")).token;
  caller.send(Kind::call, 0, 0, as_bytes("behind it"));
  for (int i = 0; i < 8; ++i) turn();
  caller.vanish();
  for (int i = 0; i < 8; ++i) turn();
  answer(token, TC_OK, "", object_of("echo"));
  EXPECT_TRUE(pump([&] { return stat(node, "executed") == 2; }));
}

TEST_F(CompileAt, a_helper_that_dies_while_it_compiles_fails_what_waited) {
  small();
  (void)ask(bitcode_only("echo"));
  aide.vanish();
  expect_refused(TC_ERR_DISCONNECTED, "asked n1 to compile it");
}

TEST_F(CompileAt, a_helper_that_says_nothing_fails_the_call_at_the_limit) {
  small([](Config& config) { config.compile_limit_ms = 100; });
  (void)ask(bitcode_only("echo"));
  expect_refused(TC_ERR_TIMEOUT, "had no answer within 100 ms");
  answer(1, TC_OK, "", object_of("echo"));  // too late: nobody minds
  for (int i = 0; i < 8; ++i) pump([] { return true; });
  EXPECT_FALSE(aide.bye);
}

TEST_F(CompileAt, answers_that_nobody_asked_for_are_ignored) {
  auto& node = small();
  const auto token = ask(bitcode_only("echo")).token;
  answer(token + 1, TC_OK, "", object_of("echo"));
  answer(token, TC_ERR_COMPILE, "no", {});
  answer(token, TC_OK, "", object_of("echo"));
  expect_refused(TC_ERR_COMPILE, "which says: no");
  EXPECT_EQ(stat(node, "codes"), 0u);
}

TEST_F(CompileAt, an_answer_of_a_peer_that_was_not_asked_is_ignored) {
  auto& node = small();
  const auto token = ask(bitcode_only("echo")).token;
  caller.send(Kind::compile, wire::compile_answer, wire::encode_compile_answer({token, TC_ERR_COMPILE, "a lie", {}}));
  for (int i = 0; i < 20; ++i) turn();
  EXPECT_FALSE(caller.reply_to(55).has_value()) << "the call waits for the helper";
  answer(token, TC_OK, "", object_of("echo"));
  ASSERT_TRUE(pump([&] { return caller.reply_to(55).has_value(); }));
  EXPECT_EQ(caller.reply_to(55)->status, TC_OK) << caller.reply_to(55)->message;
  EXPECT_EQ(stat(node, "codes"), 1u);
}

TEST_F(CompileAt, an_answer_that_is_cut_short_costs_the_helper_its_link) {
  small();
  const auto token = ask(bitcode_only("echo")).token;
  auto body = wire::encode_compile_answer({token, TC_OK, "", as_bytes("x")});
  body.resize(13);
  aide.send(Kind::compile, wire::compile_answer, body);
  expect_refused(TC_ERR_MALFORMED, "compile answer");
  EXPECT_TRUE(aide.bye);
}

TEST_F(CompileAt, objects_with_any_bit_turned_are_loaded_or_refused_but_break_nothing) {
  auto& node = small();
  aide.listen("n1");
  join();
  const auto object = object_of("refuse");
  uint32_t number = 0;
  for (size_t bit = 0; bit < 64 * 8; bit += 3, ++number) {  // the ELF header: what is loaded still runs
    const auto bundle = test::renamed(bitcode_only("refuse"), "turned" + std::to_string(bit));
    aide.frames.clear();
    const auto token = 1000 + number;
    caller.send(Kind::call_code, wire::flag_call_header, number, test::call_header(token) + test::code_section(bundle));
    ASSERT_TRUE(pump([&] { return aide.find(Kind::compile) != nullptr; })) << bit;
    auto turned = object;
    turned[bit / 8] ^= std::byte{1} << (bit % 8);
    const auto question = wire::decode_compile_question(aide.find(Kind::compile)->body).value();
    answer(question.token, TC_OK, "", turned);
    ASSERT_TRUE(pump([&] { return caller.reply_to(token).has_value(); })) << bit;
    EXPECT_NE(caller.reply_to(token)->status, TC_OK);
  }
  EXPECT_FALSE(aide.lost);
  EXPECT_EQ(stat(node, "links"), 2u);
}

// ---- Somebody who asks, made by hand

TEST_F(CompileAt, questions_that_make_no_sense_are_answered_and_cut_ones_break_the_link) {
  nodes.push_back(net.make(0, [&](Config& config) {
    config.compile_for = CompileFor::any;
    config.compiler = compiler_giving(object_of("echo"));
  }));
  join();
  const auto bundle = bitcode_only("echo");
  const auto ask_with = [&](const std::string& triple, const ContentId& id, ByteView bytes) {
    wire::CompileQuestion question;
    question.token = 7;
    question.limit_ms = 5000;
    question.triple = triple;
    question.head = {id, bundle.carried(), 0};
    question.bundle = bytes;
    caller.frames.clear();
    caller.send(Kind::compile, wire::compile_question, wire::encode_compile_question(question));
    EXPECT_TRUE(pump([&] { return caller.find(Kind::compile) != nullptr || caller.bye; }));
    const auto* const frame = caller.find(Kind::compile);
    return frame != nullptr ? wire::decode_compile_answer(frame->body).value().status : TC_ERR_INTERNAL;
  };
  const auto host = TargetTriple::host().text;
  const auto bytes = bundle.bytes();
  EXPECT_EQ(ask_with(host, bundle.id(), bytes), TC_OK);
  EXPECT_EQ(ask_with(host, ContentId::of(bytes), bytes), TC_ERR_MALFORMED) << "not what its id says";
  EXPECT_EQ(ask_with(host, bundle.id(), ByteView(bytes).first(20)), TC_ERR_MALFORMED);
  EXPECT_EQ(ask_with("s390x-unknown-linux-gnu", bundle.id(), bytes), TC_ERR_NO_SLICE);
  EXPECT_NE(ask_with("nonsense", bundle.id(), bytes), TC_OK);
  EXPECT_FALSE(caller.bye);
  caller.send(Kind::compile, wire::compile_question, Bytes(9));
  ASSERT_TRUE(pump([&] { return caller.bye.has_value(); }));
  EXPECT_THAT(caller.bye->reason, HasSubstr("compile question"));
}

TEST_F(CompileAt, compile_frames_of_another_type_break_the_link) {
  small();
  join();
  caller.send(Kind::compile, 2, Bytes(8));
  ASSERT_TRUE(pump([&] { return caller.bye.has_value(); }));
  EXPECT_THAT(caller.bye->reason, HasSubstr("of type 2 when 0 and 1 are known"));
}

}  // namespace
}  // namespace tc::node
