// SPDX-License-Identifier: Apache-2.0
#include "wire/compile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include "wire/testing/frames.h"

namespace tc::wire {
namespace {

using ::testing::HasSubstr;
using testing::sample_question;

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

}  // namespace
}  // namespace tc::wire
