// SPDX-License-Identifier: Apache-2.0
#include "transport/greeting.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "base/file.h"

namespace tc::transport {
namespace {

using ::testing::HasSubstr;

Greeting sample() {
  return {.transport = "tcp", .details = {std::byte{1}, std::byte{2}}, .hello = Bytes(20, std::byte{3})};
}
const Error refused{TC_ERR_DENIED, "nobody is let in"};

// A change of these files is a change of the protocol: raise greeting_version. TC_UPDATE_GOLDEN=1 writes them anew.
void expect_golden(const std::string& name, const Bytes& ours) {
  const std::string path = std::string(TC_GOLDEN_DIR) + "/" + name;
  if (std::getenv("TC_UPDATE_GOLDEN") != nullptr) {
    ASSERT_TRUE(write_file_atomically(path, ours));
  }
  const auto golden = read_file(path, 4096);
  ASSERT_TRUE(golden) << golden.error().message;
  EXPECT_EQ(*golden, ours) << name;
}

TEST(Greeting, lies_on_the_wire_as_its_golden_file) {
  expect_golden("greeting/greeting.bin", encode_greeting(sample()));
  expect_golden("greeting/refusal.bin", encode_refusal(refused));
}

TEST(Greeting, is_decoded_to_what_was_encoded) {
  const auto read = decode_greeting(encode_greeting(sample()));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->transport, "tcp");
  EXPECT_EQ(read->details, sample().details);
  EXPECT_EQ(read->hello, sample().hello);
}

TEST(Greeting, a_refusal_is_an_error_with_the_peers_status_and_reason) {
  const auto read = decode_greeting(encode_refusal(refused));
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, TC_ERR_DENIED);
  EXPECT_EQ(read.error().message, "nobody is let in");
}

TEST(Greeting, a_refusal_of_another_version_is_understood) {
  Bytes bytes = encode_refusal(refused);
  bytes[4] = std::byte{greeting_version + 1};
  EXPECT_EQ(decode_greeting(bytes).error().message, "nobody is let in");
}

TEST(Greeting, a_refusal_cannot_steer_a_terminal_and_is_cut_when_it_is_long) {
  const auto steering = decode_greeting(encode_refusal({TC_ERR_DENIED, "red \x1b[31m"}));
  EXPECT_EQ(steering.error().message, "red ?[31m");
  const auto longest = decode_greeting(encode_refusal({TC_ERR_DENIED, std::string(70'000, 'x')}));
  EXPECT_EQ(longest.error().message, std::string(4096, 'x'));
}

TEST(Greeting, a_refusal_with_the_status_ok_is_malformed) {
  EXPECT_EQ(decode_greeting(encode_refusal({TC_OK, "welcome"})).error().code, TC_ERR_MALFORMED);
}

TEST(Greeting, truncated_at_any_byte_is_an_error) {
  for (const Bytes& whole : {encode_greeting(sample()), encode_refusal(refused)})
    for (size_t size = 0; size < whole.size(); ++size) {
      const auto read = decode_greeting(ByteView(whole).first(size));
      ASSERT_FALSE(read) << size;
      EXPECT_FALSE(read.error().message.empty()) << size;
    }
}

TEST(Greeting, bytes_behind_its_end_are_an_error) {
  Bytes bytes = encode_greeting(sample());
  bytes.push_back(std::byte{0});
  EXPECT_THAT(decode_greeting(bytes).error().message, HasSubstr("29 bytes when its head says 28"));
}

// One flipped bit is an error, or it stands in what the greeting carries and comes back as it was sent.
TEST(Greeting, with_any_bit_flipped_is_an_error_or_another_greeting_and_never_a_misread_one) {
  const Bytes whole = encode_greeting(sample());
  size_t accepted = 0;
  for (size_t bit = 0; bit < whole.size() * 8; ++bit) {
    Bytes bytes = whole;
    bytes[bit / 8] ^= static_cast<std::byte>(1u << bit % 8);
    const auto read = decode_greeting(bytes);
    if (bit / 8 < greeting_head_bytes) {
      EXPECT_FALSE(read) << "bit " << bit << " of the head";
    }
    if (!read) {
      EXPECT_FALSE(read.error().message.empty()) << bit;
      continue;
    }
    ++accepted;
    EXPECT_EQ(encode_greeting(*read), bytes) << bit;
  }
  EXPECT_GE(accepted, 8 * (sample().details.size() + sample().hello.size()));
}

TEST(Greeting, another_version_is_named_with_ours) {
  Bytes bytes = encode_greeting(sample());
  bytes[4] = std::byte{9};
  const auto read = decode_greeting(bytes);
  EXPECT_EQ(read.error().code, TC_ERR_VERSION);
  EXPECT_EQ(read.error().message, "its greeting has version 9 when ours has 1");
}

TEST(Greeting, a_program_that_is_no_node_is_quoted) {
  const auto read = decode_greeting_head(as_bytes("HTTP/1.1 400").first(greeting_head_bytes));
  EXPECT_EQ(read.error().code, TC_ERR_MALFORMED);
  EXPECT_EQ(read.error().message, "it is no Three-Chains node: it says 'HTTP/1.1 400'");
  EXPECT_THAT(decode_greeting_head(as_bytes("\x16\x03\x01\x02 hello tls")).error().message, HasSubstr("'.... hello"));
}

TEST(Greeting, the_largest_size_is_taken_and_one_more_is_not) {
  Bytes head = encode_greeting(sample());
  head.resize(greeting_head_bytes);
  const auto with_size = [&](uint32_t size) {
    std::memcpy(head.data() + 8, &size, sizeof size);
    return decode_greeting_head(head);
  };
  EXPECT_EQ(with_size(max_greeting_bytes).value(), max_greeting_bytes);
  EXPECT_EQ(with_size(max_greeting_bytes + 1).error().code, TC_ERR_TOO_LARGE);
  EXPECT_EQ(with_size(0xffffffff).error().code, TC_ERR_TOO_LARGE);
}

TEST(Greeting, a_transport_with_a_name_that_cannot_be_shown_is_refused) {
  for (const char* name : {"t p", "t\np", "t\x1bp"}) {
    Greeting greeting = sample();
    greeting.transport = name;
    const auto read = decode_greeting(encode_greeting(greeting));
    EXPECT_EQ(read.error().code, TC_ERR_MALFORMED) << name;
  }
}

}  // namespace
}  // namespace tc::transport
