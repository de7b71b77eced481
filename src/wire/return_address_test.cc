// SPDX-License-Identifier: Apache-2.0
#include "wire/return_address.h"

#include <gtest/gtest.h>

#include "wire/frame.h"

namespace tc::wire {
namespace {

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

}  // namespace
}  // namespace tc::wire
