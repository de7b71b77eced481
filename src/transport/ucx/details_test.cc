// SPDX-License-Identifier: Apache-2.0
#include "transport/ucx/details.h"

#include <gmock/gmock.h>

#include "transport/testing/raw_peer.h"

namespace tc::transport {
namespace {

using ::testing::HasSubstr;

UcxDetails sample() {
  return {.version = "1.13.1",
          .tcp_alone = true,
          .token = 0x0123456789ab,
          .window_bytes = 65536,
          .worker_address = Bytes(40, std::byte{1}),
          .address = 0x7f0000001000,
          .key = Bytes(20, std::byte{2})};
}

TEST(UcxDetails, are_decoded_to_what_was_encoded) {
  const auto read = decode_details(encode_details(sample()));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(encode_details(*read), encode_details(sample()));
  EXPECT_EQ(read->worker_address, sample().worker_address);
}

TEST(UcxDetails, truncated_at_any_byte_or_too_long_are_malformed) {
  Bytes bytes = encode_details(sample());
  for (size_t size = 0; size < bytes.size(); ++size) {
    const auto read = decode_details(ByteView(bytes).first(size));
    ASSERT_FALSE(read) << size;
    EXPECT_EQ(read.error().code, TC_ERR_MALFORMED);
    EXPECT_THAT(read.error().message, HasSubstr("its details about UCX"));
  }
  bytes.push_back(std::byte{0});
  EXPECT_FALSE(decode_details(bytes));
}

TEST(UcxDetails, with_any_bit_flipped_are_malformed) {
  const Bytes whole = encode_details(sample());
  for (size_t bit = 0; bit < whole.size() * 8; ++bit) EXPECT_FALSE(decode_details(with_bit_flipped(whole, bit))) << bit;
}

TEST(UcxDetails, that_make_no_sense_are_malformed) {
  const auto refused = [](auto&& change) {
    UcxDetails details = sample();
    change(details);
    return !decode_details(encode_details(details));
  };
  EXPECT_TRUE(refused([](auto& d) { d.version = "1 13"; }));
  EXPECT_TRUE(refused([](auto& d) { d.token = uint64_t{1} << 48; }));
  EXPECT_TRUE(refused([](auto& d) { d.window_bytes = min_window_bytes - 1; }));
  EXPECT_TRUE(refused([](auto& d) { d.window_bytes = max_window_bytes + 1; }));
  EXPECT_TRUE(refused([](auto& d) { d.worker_address.clear(); }));
  EXPECT_FALSE(refused([](auto& d) { d.key.clear(); })) << "one without puts";
}

}  // namespace
}  // namespace tc::transport
