// SPDX-License-Identifier: Apache-2.0
#include "transport/greeting.h"

#include <gtest/gtest.h>

#include "transport/offer.h"

namespace tc::transport {
namespace {

Greeting sample() {
  return {.ucx_version = "1.13.1",
          .machine = 7,
          .token = 0x123456789abc,
          .batch_bytes = 16384,
          .window_bytes = 1048576,
          .listening = "127.0.0.1:7001",
          .worker_address = Bytes(100, std::byte{3})};
}

TEST(Greeting, comes_back_as_it_was) {
  const auto read = decode_greeting(encode_greeting(sample()));
  ASSERT_TRUE(read && *read);
  EXPECT_EQ((*read)->token, sample().token);
  EXPECT_EQ((*read)->listening, "127.0.0.1:7001");
  EXPECT_EQ((*read)->worker_address, sample().worker_address);
}

TEST(Greeting, a_beginning_is_waited_on_and_more_than_all_is_refused) {
  Bytes bytes = encode_greeting(sample());
  for (size_t size = 0; size < bytes.size(); ++size) {
    const auto read = decode_greeting(ByteView(bytes).first(size));
    ASSERT_TRUE(read) << size;
    EXPECT_FALSE(*read) << size;
  }
  bytes.push_back(std::byte{0});
  EXPECT_EQ(decode_greeting(bytes).error().message, "1 bytes follow the peer's greeting when none may");
}

TEST(Greeting, a_stranger_is_refused_at_its_first_four_bytes) {
  const auto read = decode_greeting(as_bytes("GET / HTTP/1.1"));
  EXPECT_EQ(read.error().code, TC_ERR_MALFORMED);
}

TEST(Greeting, a_size_over_the_limit_is_refused_before_it_is_waited_on) {
  Bytes bytes = encode_greeting(sample());
  bytes[6] = std::byte{0xff};
  EXPECT_EQ(decode_greeting(bytes).error().code, TC_ERR_TOO_LARGE);
}

TEST(Greeting, another_version_is_named_with_ours) {
  Bytes bytes = encode_greeting(sample());
  bytes[8] = std::byte{9};
  EXPECT_EQ(decode_greeting(bytes).error().message, "the peer's transport has version 9, ours has 1");
}

TEST(Greeting, limits_that_make_no_sense_are_refused) {
  Greeting greeting = sample();
  greeting.window_bytes = 100;
  EXPECT_FALSE(decode_greeting(encode_greeting(greeting)));
  greeting = sample();
  greeting.batch_bytes = 16;
  EXPECT_FALSE(decode_greeting(encode_greeting(greeting)));
}

TEST(Offer, comes_back_as_it_was_and_no_part_of_it_is_taken_for_the_whole) {
  const Offer offer{.ring = true,
                    .put = false,
                    .ucx_version = "1.13.1",
                    .machine = 1,
                    .nonce = 2,
                    .ring_bytes = 65536,
                    .address = 4096,
                    .key = Bytes(30, std::byte{1})};
  const Bytes bytes = encode_offer(offer);
  const auto read = decode_offer(bytes);
  ASSERT_TRUE(read);
  EXPECT_TRUE(read->ring);
  EXPECT_FALSE(read->put);
  EXPECT_EQ(read->key, offer.key);
  for (size_t size = 0; size < bytes.size(); ++size) EXPECT_FALSE(decode_offer(ByteView(bytes).first(size))) << size;
}

TEST(Offer, a_ring_of_an_impossible_size_is_refused) {
  for (const uint32_t bytes : {0u, 1u, 4095u, 5000u, 0x80000000u}) {
    const auto read = decode_offer(encode_offer({.ring = true, .ring_bytes = bytes, .key = Bytes(3)}));
    EXPECT_FALSE(read) << bytes;
  }
}

}  // namespace
}  // namespace tc::transport
