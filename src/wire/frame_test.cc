// SPDX-License-Identifier: Apache-2.0
//
// Frames of every kind: what was encoded is decoded, and what is malformed is refused.
#include "wire/frame.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "wire/cluster_event.h"
#include "wire/compile.h"
#include "wire/statistics.h"
#include "wire/testing/bundles.h"
#include "wire/testing/frames.h"

namespace tc::wire {
namespace {

using tc::testing::bytes_of;
using testing::code_body;
using ::testing::HasSubstr;
using testing::sample_answer;
using testing::sample_hello;
using testing::sample_question;
using testing::sample_times;

TEST(FrameHeader, holds_kind_flags_number_and_length_in_one_word) {
  for (const uint32_t number : {0u, 1u, 255u, 256u, max_number})
    for (const uint32_t length : {0u, 1u, 0x80000000u, 0xffffffffu})
      for (int kind = 0; kind <= last_kind; ++kind) {
        const auto header = decode(encode(static_cast<Kind>(kind), 5, number, length));
        EXPECT_EQ(static_cast<int>(header.kind), kind);
        EXPECT_EQ(header.flags, 5);
        EXPECT_EQ(header.number, number);
        EXPECT_EQ(header.length, length);
      }
}

TEST(FrameHeader, a_number_too_large_does_not_spill_into_the_length) {
  const auto header = decode(encode(Kind::call, 0xff, 0xffffffff, 7));
  EXPECT_EQ(header.kind, Kind::call);
  EXPECT_EQ(header.length, 7u);
  EXPECT_EQ(header.number, max_number);
}

TEST(FrameHeader, the_word_of_every_real_frame_differs_from_nothing_here_yet) {
  for (int kind = 1; kind <= last_kind; ++kind) EXPECT_NE(encode(static_cast<Kind>(kind), 0, 0, 0), 0u);
}

TEST(FrameHeader, a_cached_call_with_one_byte_of_payload_is_nine_bytes) {
  const std::byte payload[1] = {};
  EXPECT_EQ(make_frame(Kind::call, 0, 1, payload).size(), 9u);
  EXPECT_EQ(stride(1), 16u);
}

TEST(FrameHeader, strides_keep_payloads_at_multiples_of_sixteen) {
  for (size_t length = 0; length < 100; ++length) {
    EXPECT_EQ(stride(length) % alignment, 0u);
    EXPECT_GE(stride(length), header_bytes + length);
    EXPECT_LT(stride(length), header_bytes + length + alignment);
  }
  EXPECT_EQ(stride(0xffffffff), 0x100000010u) << "no length overflows it";
}

TEST(CallHeader, comes_back_as_it_went) {
  std::byte bytes[call_header_bytes];
  write_call_header(bytes, {.token = 0x1122334455667788, .deadline_ms = 1000, .hops_left = 64, .fanout_left = 1024});
  const auto call_header = read_call_header(bytes);
  EXPECT_EQ(call_header.token, 0x1122334455667788u);
  EXPECT_EQ(call_header.deadline_ms, 1000u);
  EXPECT_EQ(call_header.hops_left, 64);
  EXPECT_EQ(call_header.fanout_left, 1024);
}

TEST(Code, carries_bundle_and_payload_each_aligned) {
  for (size_t size = 0; size < 40; ++size) {
    const auto body = code_body(std::string(size, 'b'), "payload");
    const auto code = decode_code(body);
    ASSERT_TRUE(code) << code.error().message;
    EXPECT_EQ(code->head.id, ContentId::of(as_bytes("x")));
    EXPECT_EQ(code->head.carried, 5u);
    EXPECT_EQ(as_text(code->bundle), std::string(size, 'b'));
    EXPECT_EQ(as_text(code->payload), "payload");
    EXPECT_EQ(static_cast<size_t>(code->payload.data() - body.data()) % alignment, 0u);
  }
}

Chain chain_of(size_t size) {
  std::vector<Chain::Key> keys(size);
  for (size_t i = 0; i < size; ++i) keys[i].fill(static_cast<std::byte>(i + 1));
  return Chain(std::move(keys));
}

TEST(Code, carries_the_keys_on_whose_behalf_it_is_called) {
  for (size_t size = 0; size <= Chain::most; ++size)
    for (const std::string bundle : {"", "b", "sixteen bytes ..", "a bundle of some more bytes"}) {
      const auto chain = chain_of(size);
      Bytes body;
      append_code(body, {ContentId::of(as_bytes("x")), 5, 0, chain}, as_bytes(bundle));
      Bytes plain;
      append_code(plain, {ContentId::of(as_bytes("x")), 5, 0}, as_bytes(bundle));
      EXPECT_EQ(with_chain(plain, chain), body);
      Writer(body).bytes(as_bytes("payload"));
      const auto code = decode_code(body);
      ASSERT_TRUE(code) << code.error().message;
      EXPECT_EQ(code->head.chain, chain);
      EXPECT_EQ(as_text(code->bundle), bundle);
      EXPECT_EQ(as_text(code->payload), "payload");
      for (size_t cut = 0; cut < body.size() - 7; ++cut) EXPECT_FALSE(decode_code(ByteView(body).first(cut))) << cut;
    }
}

TEST(Code, on_behalf_of_more_than_eight_is_refused) {
  Bytes body;
  append_code(body, {ContentId::of(as_bytes("x")), 5, 0, chain_of(9)}, as_bytes("bundle"));
  EXPECT_EQ(decode_code(body).error().message, "code frame: a call on behalf of 9 others when at most 8 may be named");
}

TEST(Chain, names_code_anew_for_each_order_of_keys_and_as_it_is_for_nobody) {
  const auto id = ContentId::of(as_bytes("x"));
  EXPECT_EQ(Chain().table_key(id), id);
  const auto two = chain_of(2);
  const Chain turned({two.keys()[1], two.keys()[0]});
  EXPECT_NE(two.table_key(id), id);
  EXPECT_NE(two.table_key(id), chain_of(1).table_key(id));
  EXPECT_NE(two.table_key(id), turned.table_key(id));
  EXPECT_NE(two.table_key(id), two.table_key(ContentId::of(as_bytes("y"))));
}

TEST(Code, a_bundle_size_that_lies_is_refused) {
  auto body = code_body("bundle", "");
  const auto lie = uint32_t{0xfffffff0};
  std::memcpy(body.data() + 40, &lie, sizeof lie);
  const auto code = decode_code(body);
  ASSERT_FALSE(code);
  EXPECT_EQ(code.error().message, "code frame: 4294967280 bytes wanted at byte 48 when only 16 are left");
}

TEST(Reply, carries_status_code_words_and_bytes) {
  const auto bytes = bytes_of("answer");
  const auto body = encode_reply(
      {.token = 9, .status = TC_ERR_IFUNC, .code = -3, .node_id = 2, .message = "no such row", .bytes = bytes});
  const auto reply = decode_reply(body);
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->token, 9u);
  EXPECT_EQ(reply->status, TC_ERR_IFUNC);
  EXPECT_EQ(reply->code, -3);
  EXPECT_EQ(reply->node_id, 2u);
  EXPECT_EQ(reply->message, "no such row");
  EXPECT_EQ(as_text(reply->bytes), "answer");
}

TEST(Reply, a_message_longer_than_its_field_is_cut_and_the_bytes_stay_whole) {
  const auto bytes = bytes_of("answer");
  const auto body = encode_reply({.status = TC_ERR_IFUNC, .message = std::string(70000, 'm'), .bytes = bytes});
  const auto reply = decode_reply(body);
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->message.size(), 65535u);
  EXPECT_EQ(as_text(reply->bytes), "answer");
}

TEST(Reply, words_from_a_peer_cannot_steer_a_terminal) {
  const auto reply = decode_reply(encode_reply({.status = TC_ERR_IFUNC, .message = "a\x1b[2Jb\r\nc\td \xc3\xa9"}));
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->message, "a?[2Jb?\nc\td \xc3\xa9") << "lines, tabs and UTF-8 are left alone";
  EXPECT_EQ(decode_disconnect(encode_disconnect({.status = TC_OK, .reason = "bell\x07"}))->reason, "bell?");
}

TEST(Reply, a_status_that_nobody_knows_is_an_internal_error) {
  auto body = encode_reply({.token = 1});
  body[8] = std::byte{200};
  EXPECT_EQ(decode_reply(body)->status, TC_ERR_INTERNAL);
}

TEST(ControlFrames, come_back_as_they_went) {
  const auto need = decode_need(encode_need({.id = ContentId::of(as_bytes("n")), .triple = "aarch64-linux-gnu"}));
  ASSERT_TRUE(need);
  EXPECT_EQ(need->id, ContentId::of(as_bytes("n")));
  EXPECT_EQ(need->triple, "aarch64-linux-gnu");
  EXPECT_EQ(decode_barrier(encode_barrier(uint64_t{1} << 40)), uint64_t{1} << 40);
  EXPECT_EQ(decode_cancel(encode_cancel(~uint64_t{0})), ~uint64_t{0});
  const auto disconnect =
      decode_disconnect(encode_disconnect({.status = TC_ERR_VERSION, .reason = "protocol 2 when we speak 1"}));
  ASSERT_TRUE(disconnect);
  EXPECT_EQ(disconnect->status, TC_ERR_VERSION);
  EXPECT_EQ(disconnect->reason, "protocol 2 when we speak 1");
}

TEST(HelloFrame, comes_back_as_it_went) {
  const auto hello = decode_hello(encode_hello(sample_hello()));
  ASSERT_TRUE(hello) << hello.error().message;
  EXPECT_EQ(hello->abi, 1);
  EXPECT_EQ(hello->instance, 77u);
  EXPECT_EQ(hello->node_id, 4u);
  EXPECT_EQ(hello->max_message, 1u << 20);
  EXPECT_EQ(hello->name, "node four");
  EXPECT_EQ(hello->address, "127.0.0.1:4711");
  EXPECT_EQ(hello->triple, "x86_64-linux-gnu");
  EXPECT_EQ(hello->cpu, "sapphirerapids");
  EXPECT_EQ(hello->last_words, "node 4 ended");
}

TEST(HelloFrame, another_protocol_is_named_whatever_follows_it) {
  Bytes body;
  Writer(body).u32(protocol_version + 1).bytes(as_bytes("a layout of tomorrow"));
  const auto hello = decode_hello(body);
  ASSERT_FALSE(hello);
  EXPECT_EQ(hello.error().code, TC_ERR_VERSION);
  EXPECT_EQ(hello.error().message, "the peer speaks protocol version 9 when this build speaks version 8");
}

TEST(HelloFrame, labels_that_could_act_in_a_log_are_refused) {
  auto hello = sample_hello();
  hello.name = "node\nfour";
  EXPECT_EQ(decode_hello(encode_hello(hello)).error().code, TC_ERR_MALFORMED);
}

// ---- Return addresses

TEST(ReturnAddress, comes_back_and_leaves_the_payload_aligned) {
  for (const std::string& address : {std::string(), std::string("10.0.0.1:4711"), std::string(255, 'a')}) {
    auto bytes = encode_return_address({.instance = 7, .node_id = 3, .address = address});
    EXPECT_EQ(bytes.size() % alignment, 0u);
    const auto size_alone = bytes.size();
    bytes.push_back(std::byte{'p'});  // the payload behind it
    size_t size = 0;
    const auto return_address = decode_return_address(bytes, size);
    ASSERT_TRUE(return_address);
    EXPECT_EQ(return_address->instance, 7u);
    EXPECT_EQ(return_address->node_id, 3u);
    EXPECT_EQ(return_address->address, address);
    EXPECT_EQ(size, size_alone);
  }
}

TEST(ReturnAddress, an_address_that_could_act_in_a_log_is_refused) {
  size_t size = 0;
  EXPECT_FALSE(decode_return_address(
      encode_return_address({.instance = 1, .node_id = 0, .address = "1.2.3.4:5\nfake line"}), size));
}

const ReturnAddress somewhere{.instance = 4711, .node_id = 3, .address = "10.0.0.3:4711"};

void expect_return_address(const PackedReturnAddress& packed, const ReturnAddress& return_address) {
  EXPECT_EQ(packed.value().instance, return_address.instance);
  EXPECT_EQ(packed.value().node_id, return_address.node_id);
  EXPECT_EQ(packed.value().address, return_address.address);
  const auto bytes = encode_return_address(return_address);
  EXPECT_EQ(Bytes(packed.bytes().begin(), packed.bytes().end()), bytes);
}

TEST(PackedReturnAddress, takes_what_stands_in_front_of_a_payload_and_the_same_again) {
  PackedReturnAddress packed;
  EXPECT_TRUE(packed.bytes().empty());
  auto body = encode_return_address(somewhere);
  const auto size = body.size();
  body.resize(size + 24, std::byte{7});
  for (int i = 0; i < 3; ++i) {
    const auto taken = packed.take(body);
    ASSERT_TRUE(taken) << taken.error().message;
    EXPECT_EQ(*taken, size);
    expect_return_address(packed, somewhere);
  }
}

TEST(PackedReturnAddress, is_another_when_any_byte_is_another) {
  const auto body = encode_return_address(somewhere);
  for (size_t i = 0; i < body.size(); ++i) {
    PackedReturnAddress packed(somewhere);
    auto changed = body;
    changed[i] ^= std::byte{1};
    size_t size = 0;
    const auto expected = decode_return_address(changed, size);
    const auto taken = packed.take(changed);
    ASSERT_EQ(taken.has_value(), expected.has_value()) << "byte " << i;
    if (!taken) {
      expect_return_address(packed, somewhere);
      continue;
    }
    EXPECT_EQ(*taken, size);
    expect_return_address(packed, *expected);
  }
}

TEST(PackedReturnAddress, that_was_cut_off_is_refused_and_changes_nothing) {
  const auto body = encode_return_address(somewhere);
  const ReturnAddress elsewhere{.instance = 1, .node_id = 2, .address = "n2"};
  for (size_t size = 0; size < body.size(); ++size) {
    PackedReturnAddress same(somewhere), other(elsewhere);
    EXPECT_FALSE(same.take(ByteView(body).first(size))) << size;
    EXPECT_FALSE(other.take(ByteView(body).first(size))) << size;
    expect_return_address(same, somewhere);
    expect_return_address(other, elsewhere);
  }
}

TEST(PackedReturnAddress, holds_the_longest_address_and_cuts_longer_ones) {
  const ReturnAddress longest{.instance = 1, .node_id = 2, .address = std::string(255, 'h')};
  EXPECT_EQ(PackedReturnAddress(longest).bytes().size(), max_return_address_bytes);
  const ReturnAddress longer{.instance = 1, .node_id = 2, .address = std::string(300, 'h')};
  PackedReturnAddress packed;
  ASSERT_TRUE(packed.take(PackedReturnAddress(longer).bytes()));
  expect_return_address(packed, longest);
}

// ---- Cluster events

TEST(Notice, a_death_is_read_as_it_was_written) {
  const auto gone = decode_gone(encode_gone({1, 2, 3, "node", "it vanished"})).value();
  EXPECT_EQ(gone.instance, 1u);
  EXPECT_EQ(gone.witness, 2u);
  EXPECT_EQ(gone.node_id, 3u);
  EXPECT_EQ(gone.name, "node");
  EXPECT_EQ(gone.reason, "it vanished");
}

TEST(Notice, the_name_of_a_dead_node_cannot_forge_lines_of_the_log) {
  for (const auto* const name : {"a\nnode 1 is well", "\x1b[2J", "\x7f"}) {
    const auto gone = decode_gone(encode_gone({1, 2, 3, name, "it vanished"}));
    ASSERT_FALSE(gone) << name;
    EXPECT_EQ(gone.error().code, TC_ERR_MALFORMED);
    EXPECT_THAT(gone.error().message, HasSubstr("its name is not printable"));
  }
}

TEST(Notice, the_reason_of_a_death_cannot_steer_a_terminal) {
  const auto gone = decode_gone(encode_gone({1, 2, 3, "node", "first\nsecond\x1b[2J\r\x7f"})).value();
  EXPECT_EQ(gone.reason, "first\nsecond?[2J??");
}

TEST(Notice, a_marker_has_the_flags_that_are_known) {
  for (uint8_t flags = 0; flags < 8; ++flags) {
    const auto marker = decode_marker(encode_marker({5, 6, flags}));
    ASSERT_EQ(marker.has_value(), flags <= 3) << int{flags};
    if (!marker) continue;
    EXPECT_EQ(marker->origin, 5u);
    EXPECT_EQ(marker->number, 6u);
    EXPECT_EQ(marker->flags, flags);
  }
}

TEST(Notice, a_report_is_read_as_it_was_written) {
  for (const bool is_void : {false, true}) {
    const auto report = decode_report(encode_report({5, 6, is_void, {7, 8, 9}})).value();
    EXPECT_EQ(report.origin, 5u);
    EXPECT_EQ(report.number, 6u);
    EXPECT_EQ(report.is_void, is_void);
    EXPECT_THAT(report.tokens, ::testing::ElementsAre(7u, 8u, 9u));
  }
}

TEST(Notice, a_report_with_another_verdict_is_refused) {
  auto bytes = encode_report({5, 6, false, {}});
  bytes[12] = std::byte{2};
  const auto report = decode_report(bytes);
  ASSERT_FALSE(report);
  EXPECT_THAT(report.error().message, HasSubstr("its verdict is 2 when 0 and 1 are known"));
}

TEST(Notice, what_is_cut_short_or_has_bytes_behind_it_is_refused) {
  const auto refused_but_whole = [](const Bytes& whole, auto decode) {
    for (size_t size = 0; size < whole.size(); ++size)
      EXPECT_FALSE(decode(ByteView(whole).first(size))) << size << " of " << whole.size();
    auto longer = whole;
    longer.push_back(std::byte{0});
    EXPECT_FALSE(decode(longer));
  };
  refused_but_whole(encode_gone({1, 2, 3, "node", "it vanished"}), decode_gone);
  refused_but_whole(encode_marker({5, 6, 0}), decode_marker);
  refused_but_whole(encode_report({5, 6, false, {}}), decode_report);
}

// ---- Requests to compile

const std::array<std::byte, 16> bundle_bytes{std::byte{1}, std::byte{2}};

CompileQuestion question() {
  CompileQuestion one;
  one.token = 7;
  one.limit_ms = 500;
  one.triple = "x86_64-linux-gnu";
  one.cpu = "znver3";
  one.features = "+sse3,+avx";
  one.head = {ContentId::of(bundle_bytes), 1, bundle_bytes.size()};
  one.bundle = bundle_bytes;
  return one;
}

TEST(CompileFrames, a_question_is_read_as_it_was_written) {
  const auto bytes = encode_compile_question(question());
  const auto read = decode_compile_question(bytes);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->token, 7u);
  EXPECT_EQ(read->limit_ms, 500u);
  EXPECT_EQ(read->triple, "x86_64-linux-gnu");
  EXPECT_EQ(read->cpu, "znver3");
  EXPECT_EQ(read->features, "+sse3,+avx");
  EXPECT_EQ(read->head.id, ContentId::of(bundle_bytes));
  EXPECT_EQ(as_text(read->bundle), as_text(bundle_bytes));
}

TEST(CompileFrames, a_question_cut_short_anywhere_is_refused) {
  const auto bytes = encode_compile_question(question());
  for (size_t size = 0; size < bytes.size(); ++size)
    EXPECT_FALSE(decode_compile_question(ByteView(bytes).first(size))) << size << " of " << bytes.size();
  EXPECT_THAT(decode_compile_question(ByteView(bytes).first(20)).error().message, HasSubstr("compile question"));
}

TEST(CompileFrames, what_becomes_an_argument_of_a_program_is_printable) {
  for (const auto field : {&CompileQuestion::triple, &CompileQuestion::cpu, &CompileQuestion::features}) {
    auto bad = question();
    bad.*field = "two words";
    const auto bytes = encode_compile_question(bad);
    const auto read = decode_compile_question(bytes);
    ASSERT_FALSE(read);
    EXPECT_THAT(read.error().message, HasSubstr("cannot be printed"));
  }
}

TEST(CompileFrames, an_answer_is_an_object_or_words_and_not_both) {
  const auto read = [](tc_status_t status, const std::string& message, ByteView object) {
    const auto bytes = encode_compile_answer({7, status, message, object});
    const auto answer = decode_compile_answer(bytes);
    if (answer) {
      EXPECT_EQ(answer->token, 7u);
      EXPECT_EQ(answer->status, status);
      EXPECT_EQ(answer->message, message);
      EXPECT_EQ(as_text(answer->object), as_text(object));
    }
    return answer.has_value();
  };
  EXPECT_TRUE(read(TC_OK, "", bundle_bytes));
  EXPECT_TRUE(read(TC_ERR_COMPILE, "no", {}));
  EXPECT_FALSE(read(TC_OK, "", {}));
  EXPECT_FALSE(read(TC_ERR_COMPILE, "no", bundle_bytes));
}

TEST(CompileFrames, an_answer_cut_short_before_its_object_is_refused) {
  const auto bytes = encode_compile_answer({7, TC_ERR_COMPILE, "no", {}});
  for (size_t size = 0; size < bytes.size(); ++size)
    EXPECT_FALSE(decode_compile_answer(ByteView(bytes).first(size))) << size << " of " << bytes.size();
}

TEST(CompileFrames, come_back_as_they_went) {
  const auto bytes = sample_question();
  const auto question = decode_compile_question(bytes);
  ASSERT_TRUE(question) << question.error().message;
  EXPECT_EQ(question->token, 0x1122334455667788u);
  EXPECT_EQ(question->limit_ms, 10'000u);
  EXPECT_EQ(question->triple, "aarch64-unknown-linux-gnu");
  EXPECT_EQ(question->cpu, "generic");
  EXPECT_EQ(question->features, "+lse,+sve");
  EXPECT_EQ(question->head.carried, 5u);
  EXPECT_EQ(as_text(question->bundle), "the bundle");
  const auto body = encode_compile_answer({9, TC_OK, "", as_bytes("object")});
  const auto answer = decode_compile_answer(body);
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->token, 9u);
  EXPECT_EQ(as_text(answer->object), "object");
}

TEST(CompileFrames, labels_that_could_act_as_arguments_are_refused) {
  for (const char* const label : {"two words", "line\n", "\x1b[2J"}) {
    auto question = CompileQuestion{};
    question.features = label;
    EXPECT_EQ(decode_compile_question(encode_compile_question(question)).error().code, TC_ERR_MALFORMED) << label;
  }
}

TEST(CompileFrames, an_answer_holds_an_object_or_a_reason) {
  EXPECT_FALSE(decode_compile_answer(encode_compile_answer({9, TC_OK, "", {}})));
  EXPECT_FALSE(decode_compile_answer(encode_compile_answer({9, TC_ERR_COMPILE, "no", as_bytes("object")})));
}

// ---- Statistics

TEST(StatisticsFrames, an_answer_is_read_as_it_was_written) {
  const auto answer = decode_statistics_answer(encode_statistics_answer(sample_answer()));
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(answer->status, TC_OK);
  EXPECT_EQ(answer->report.name, "node four");
  EXPECT_EQ(answer->report.version, "0.1.0");
  EXPECT_EQ(answer->report.running, "tsi");
  EXPECT_EQ(answer->report.node_id, 4u);
  EXPECT_EQ(answer->report.uptime_ns, 1'500'000'000u);
  EXPECT_TRUE(answer->report.is_draining);
  const auto report = sample_answer().report;
  EXPECT_EQ(answer->report.numbers, report.numbers);
  EXPECT_EQ(answer->report.failures, report.failures);
  EXPECT_EQ(answer->report.times, report.times);
  EXPECT_EQ(answer->report.ifuncs, report.ifuncs);
  EXPECT_EQ(answer->report.links, report.links);
}

TEST(StatisticsFrames, a_refusal_is_a_status_and_words_alone) {
  const auto bytes = encode_statistics_answer({.status = TC_ERR_DENIED, .message = "not for you\x1b[2J"});
  const auto answer = decode_statistics_answer(bytes);
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(answer->status, TC_ERR_DENIED);
  EXPECT_EQ(answer->message, "not for you?[2J");
  EXPECT_FALSE(decode_statistics_answer(ByteView(bytes).first(bytes.size() - 1)));
}

TEST(StatisticsFrames, a_question_with_a_body_is_refused) {
  EXPECT_TRUE(decode_statistics_question({}));
  EXPECT_EQ(decode_statistics_question(as_bytes("x")).error().message,
            "statistics question: it has 1 bytes when it has no body");
}

TEST(StatisticsFrames, more_numbers_than_are_taken_are_refused_before_any_is_read) {
  auto answer = sample_answer();
  answer.report.numbers.assign(most_statistics, {"n", 1});
  EXPECT_TRUE(decode_statistics_answer(encode_statistics_answer(answer)));
  answer.report.numbers.emplace_back("one-more", 1);
  EXPECT_EQ(decode_statistics_answer(encode_statistics_answer(answer)).error().message,
            "statistics answer: 257 numbers when at most 256 are taken");
}

TEST(StatisticsFrames, longer_lists_than_are_taken_are_refused) {
  const auto refused = [](const StatisticsAnswer& answer) {
    const auto read = decode_statistics_answer(encode_statistics_answer(answer));
    return read ? std::string() : read.error().message;
  };
  auto answer = sample_answer();
  answer.report.ifuncs.assign(most_ifuncs, {.name = "one", .run = {}, .latency = {}});
  answer.report.links.assign(most_links, {.peer = "peer", .transport = "tcp"});
  EXPECT_EQ(refused(answer), "");
  answer.report.links.emplace_back(answer.report.links.front());
  EXPECT_EQ(refused(answer), "statistics answer: 101 links when at most 100 are taken");
  answer.report.ifuncs.emplace_back(answer.report.ifuncs.front());
  EXPECT_EQ(refused(answer), "statistics answer: 101 ifuncs when at most 100 are taken");
  answer.report.times.assign(most_times + 1, {"load", {}});
  EXPECT_EQ(refused(answer), "statistics answer: 33 times when at most 32 are taken");
  answer.report.failures.assign(most_failures + 1, {"denied", 1});
  EXPECT_EQ(refused(answer), "statistics answer: 65 failures when at most 64 are taken");
}

TEST(StatisticsFrames, ifuncs_and_links_whose_names_could_act_in_a_terminal_are_refused) {
  const auto is_refused = [](const auto& change) {
    auto answer = sample_answer();
    change(answer.report);
    return decode_statistics_answer(encode_statistics_answer(answer)).error().code == TC_ERR_MALFORMED;
  };
  for (const std::string name : {"line\n", "\x1b[2J", "\xc3\xa9"}) {
    EXPECT_TRUE(is_refused([&](NodeReport& report) { report.ifuncs[0].name = name; }));
    EXPECT_TRUE(is_refused([&](NodeReport& report) { report.links[0].peer = name; }));
    EXPECT_TRUE(is_refused([&](NodeReport& report) { report.links[0].transport = name; }));
    EXPECT_TRUE(is_refused([&](NodeReport& report) { report.failures[0].first = name; }));
    EXPECT_TRUE(is_refused([&](NodeReport& report) { report.times[0].first = name; }));
  }
  EXPECT_TRUE(is_refused([](NodeReport& report) { report.ifuncs[0].name.clear(); }));
  EXPECT_TRUE(is_refused([](NodeReport& report) { report.links[0].transport = "two words"; }));
}

TEST(StatisticsFrames, an_answer_that_is_too_long_has_the_busiest_ifuncs_and_links_and_the_sum_of_the_rest) {
  auto answer = sample_answer();
  answer.report.ifuncs.clear();
  answer.report.links.clear();
  for (uint64_t i = 0; i < 100; ++i) {
    answer.report.ifuncs.push_back({std::string(255, static_cast<char>('!' + i % 90)), i, 1, sample_times(), {}});
    answer.report.links.push_back({std::string(255, 'p'), "tcp", i, 0, 0, 0});
  }
  const auto bytes = encode_statistics_answer(answer, longest_statistics_answer / 2);
  EXPECT_LE(bytes.size(), longest_statistics_answer / 2);
  const auto read = decode_statistics_answer(bytes);
  ASSERT_TRUE(read) << read.error().message;
  const auto& report = read->report;
  ASSERT_GT(report.ifuncs.size(), 1u);
  EXPECT_EQ(report.ifuncs.front().calls, 99u);
  EXPECT_EQ(report.ifuncs.back().name, "other");
  EXPECT_EQ(report.links.front().calls, 99u);
  uint64_t calls = 0, failures = 0;
  Times run;
  for (const auto& one : report.ifuncs) calls += one.calls, failures += one.failures, run += one.run;
  EXPECT_EQ(calls, 4950u);
  EXPECT_EQ(failures, 100u);
  EXPECT_EQ(run.count(), 100 * sample_times().count());
  EXPECT_EQ(decode_statistics_answer(encode_statistics_answer(answer, 1))->report.ifuncs.size(), 0u);
}

TEST(Times, each_class_is_four_times_as_long_as_the_one_before_and_the_last_has_no_bound) {
  for (size_t i = 0; i + 1 < Times::classes; ++i) {
    Times times;
    times.add(Times::bound_ns(i));
    times.add(Times::bound_ns(i) + 1);
    EXPECT_EQ(times.counts[i], 1u);
    EXPECT_EQ(times.counts[i + 1], 1u);
  }
  Times times;
  times.add(3 * 1000, 3);
  EXPECT_EQ(times.sum_ns, 3000u);
  EXPECT_EQ(times.counts[1], 3u);
  EXPECT_EQ(times.count(), 3u);
}

TEST(StatisticsFrames, names_that_could_act_in_a_terminal_or_a_table_are_refused) {
  for (const std::string& name : {std::string("two words"), std::string("line\n"), std::string("\x1b[2J"),
                                  std::string(), std::string(longest_statistic_name + 1, 'n')}) {
    auto answer = sample_answer();
    answer.report.numbers = {{name, 1}};
    EXPECT_EQ(decode_statistics_answer(encode_statistics_answer(answer)).error().code, TC_ERR_MALFORMED) << name;
  }
  for (const auto field : {&NodeReport::name, &NodeReport::version, &NodeReport::running}) {
    auto answer = sample_answer();
    answer.report.*field = "two\nlines";
    EXPECT_EQ(decode_statistics_answer(encode_statistics_answer(answer)).error().code, TC_ERR_MALFORMED);
  }
}

TEST(StatisticsFrames, flags_that_nobody_knows_are_refused) {
  const auto answer = sample_answer();
  const auto& report = answer.report;
  auto bytes = encode_statistics_answer(answer);
  // Behind the status, an empty message, three texts, and two numbers.
  bytes[4 + 2 + 3 + report.name.size() + report.version.size() + report.running.size() + 4 + 8] = std::byte{2};
  EXPECT_EQ(decode_statistics_answer(bytes).error().message,
            "statistics answer: its flags are 2 when 0 and 1 are known");
}

// ---- Each decoder, on frames that are cut short, damaged or too long

// A greeting is no frame, but is read like one.
constexpr auto greeting = Kind::none;

// Every decoder, on bytes that end at the edge of their allocation, so that the address sanitizer sees a step over it.
bool any_decoder_takes(Kind kind, uint32_t number, ByteView view) {
  const Bytes body(view.begin(), view.end());
  size_t size = 0;
  switch (kind) {
    case Kind::call: return decode_return_address(body, size).has_value();
    case Kind::code: return decode_code(body).has_value();
    case Kind::need: return decode_need(body).has_value();
    case Kind::reply: return decode_reply(body).has_value();
    case Kind::barrier: return decode_barrier(body).has_value();
    case Kind::cancel: return decode_cancel(body).has_value();
    case Kind::disconnect: return decode_disconnect(body).has_value();
    case greeting: return decode_hello(body).has_value();
    case Kind::cluster_event:
      if (number == event_gone) return decode_gone(body).has_value();
      return number == event_marker ? decode_marker(body).has_value() : decode_report(body).has_value();
    case Kind::compile:
      if (number == compile_question) return decode_compile_question(body).has_value();
      return decode_compile_answer(body).has_value();
    case Kind::statistics:
      if (number == statistics_question) return decode_statistics_question(body).has_value();
      return decode_statistics_answer(body).has_value();
    default: return false;
  }
}

struct Sample {
  Kind kind;
  Bytes body;
  size_t least;  // shorter than that it must be refused
  uint32_t number = 0;
};

std::vector<Sample> samples() {
  const auto return_address = encode_return_address({.instance = 1, .node_id = 2, .address = "127.0.0.1:9"});
  const auto code = code_body("the bundle", "");
  const auto need = encode_need({.id = {}, .triple = "x86_64-linux-gnu"});
  const auto reply = encode_reply({.token = 1, .status = TC_ERR_IFUNC, .message = "words"});
  const auto barrier = encode_barrier(1), cancel = encode_cancel(1);
  const auto disconnect = encode_disconnect({TC_ERR_CLOSED, "done"});
  const auto hello = encode_hello(sample_hello());
  const auto gone = encode_gone({1, 2, 3, "name", "reason"});
  const auto marker = encode_marker({1, 2, marker_unrecorded});
  const auto report = encode_report({1, 2, true, {3}});
  const auto question = sample_question();
  const auto object = encode_compile_answer({1, TC_OK, "", as_bytes("x")});
  const auto refused = encode_compile_answer({1, TC_ERR_DENIED, "words", {}});
  const auto statistics = encode_statistics_answer(sample_answer());
  const auto no_statistics = encode_statistics_answer({.status = TC_ERR_DENIED, .message = "words"});
  return {{Kind::statistics, {}, 0, statistics_question},
          {Kind::statistics, statistics, statistics.size(), statistics_answer},
          {Kind::statistics, no_statistics, no_statistics.size(), statistics_answer},
          {Kind::compile, question, question.size(), compile_question},
          {Kind::compile, object, object.size(), compile_answer},
          {Kind::compile, refused, refused.size(), compile_answer},
          {Kind::cluster_event, gone, gone.size(), event_gone},
          {Kind::cluster_event, marker, marker.size(), event_marker},
          {Kind::cluster_event, report, report.size() - sizeof(uint64_t), event_report},
          {Kind::call, return_address, return_address.size()},
          {Kind::code, code, code.size()},
          {Kind::need, need, need.size()},
          {Kind::reply, reply, reply.size()},
          {Kind::barrier, barrier, barrier.size()},
          {Kind::cancel, cancel, cancel.size()},
          {Kind::disconnect, disconnect, disconnect.size()},
          {greeting, hello, hello.size()}};
}

TEST(HostileFrames, truncated_at_any_byte_they_are_refused) {
  for (const auto& [kind, body, least, number] : samples()) {
    EXPECT_TRUE(any_decoder_takes(kind, number, body)) << static_cast<int>(kind);
    for (size_t size = 0; size < least; ++size)
      EXPECT_FALSE(any_decoder_takes(kind, number, ByteView(body).first(size)))
          << "kind " << static_cast<int>(kind) << " cut to " << size << " of " << body.size();
  }
}

TEST(HostileFrames, no_flipped_bit_brings_a_decoder_down) {
  size_t taken = 0;
  for (const auto& sample : samples())
    for (size_t bit = 0; bit < sample.body.size() * 8; ++bit) {
      auto body = sample.body;
      body[bit / 8] ^= std::byte{1} << (bit % 8);
      taken += any_decoder_takes(sample.kind, sample.number, body) ? 1 : 0;
    }
  EXPECT_GT(taken, 0u);
}

TEST(HostileFrames, bytes_left_over_in_a_frame_of_fixed_form_are_refused) {
  for (auto& [kind, body, least, number] : samples()) {
    const bool fixed = kind == Kind::need || kind == Kind::barrier || kind == Kind::cancel ||
                       kind == Kind::disconnect || kind == greeting;
    if (!fixed && kind != Kind::cluster_event && kind != Kind::statistics) continue;
    auto longer = body;
    longer.push_back(std::byte{0});
    EXPECT_FALSE(any_decoder_takes(kind, number, longer)) << static_cast<int>(kind);
  }
}

}  // namespace
}  // namespace tc::wire
