// SPDX-License-Identifier: Apache-2.0
//
// Frames that lie: each decoder, on frames that are cut short, damaged or too long.
#include <gtest/gtest.h>

#include "wire/cluster_event.h"
#include "wire/frame.h"
#include "wire/testing/frames.h"

namespace tc::wire {
namespace {

using testing::code_body;
using testing::sample_hello;
using testing::sample_question;

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
    case Kind::disconnect: return decode_disconnect(body).has_value();
    case greeting: return decode_hello(body).has_value();
    case Kind::cluster_event:
      if (number == event_gone) return decode_gone(body).has_value();
      return number == event_marker ? decode_marker(body).has_value() : decode_report(body).has_value();
    case Kind::compile:
      if (number == compile_question) return decode_compile_question(body).has_value();
      return decode_compile_answer(body).has_value();
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
  const auto barrier = encode_barrier(1);
  const auto disconnect = encode_disconnect({TC_ERR_CLOSED, "done"});
  const auto hello = encode_hello(sample_hello());
  const auto gone = encode_gone({1, 2, 3, "name", "reason"});
  const auto marker = encode_marker({1, 2, marker_unrecorded});
  const auto report = encode_report({1, 2, true, {3}});
  const auto question = sample_question();
  const auto object = encode_compile_answer({1, TC_OK, "", as_bytes("x")});
  const auto refused = encode_compile_answer({1, TC_ERR_DENIED, "words", {}});
  return {{Kind::compile, question, question.size(), compile_question},
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
    const bool fixed = kind == Kind::need || kind == Kind::barrier || kind == Kind::disconnect || kind == greeting;
    if (!fixed && kind != Kind::cluster_event) continue;
    auto longer = body;
    longer.push_back(std::byte{0});
    EXPECT_FALSE(any_decoder_takes(kind, number, longer)) << static_cast<int>(kind);
  }
}

}  // namespace
}  // namespace tc::wire
