// SPDX-License-Identifier: Apache-2.0
#include "wire/route.h"

#include <gtest/gtest.h>

#include "wire/frame.h"

namespace tc::wire {
namespace {

TEST(Route, comes_back_and_leaves_the_payload_aligned) {
  for (const std::string& address : {std::string(), std::string("10.0.0.1:4711"), std::string(255, 'a')}) {
    auto bytes = encode_route({.instance = 7, .node_id = 3, .address = address});
    EXPECT_EQ(bytes.size() % alignment, 0u);
    const auto size_alone = bytes.size();
    bytes.push_back(std::byte{'p'});  // the payload behind it
    size_t size = 0;
    const auto route = decode_route(bytes, size);
    ASSERT_TRUE(route);
    EXPECT_EQ(route->instance, 7u);
    EXPECT_EQ(route->node_id, 3u);
    EXPECT_EQ(route->address, address);
    EXPECT_EQ(size, size_alone);
  }
}

TEST(Route, an_address_that_could_act_in_a_log_is_refused) {
  size_t size = 0;
  EXPECT_FALSE(decode_route(encode_route({.instance = 1, .node_id = 0, .address = "1.2.3.4:5\nfake line"}), size));
}

const Route somewhere{.instance = 4711, .node_id = 3, .address = "10.0.0.3:4711"};

void expect_route(const PackedRoute& packed, const Route& route) {
  EXPECT_EQ(packed.route().instance, route.instance);
  EXPECT_EQ(packed.route().node_id, route.node_id);
  EXPECT_EQ(packed.route().address, route.address);
  const auto bytes = encode_route(route);
  EXPECT_EQ(Bytes(packed.bytes().begin(), packed.bytes().end()), bytes);
}

TEST(PackedRoute, takes_what_stands_in_front_of_a_payload_and_the_same_again) {
  PackedRoute packed;
  EXPECT_TRUE(packed.bytes().empty());
  auto body = encode_route(somewhere);
  const auto size = body.size();
  body.resize(size + 24, std::byte{7});
  for (int i = 0; i < 3; ++i) {
    const auto taken = packed.take(body);
    ASSERT_TRUE(taken) << taken.error().message;
    EXPECT_EQ(*taken, size);
    expect_route(packed, somewhere);
  }
}

TEST(PackedRoute, is_another_when_any_byte_is_another) {
  const auto body = encode_route(somewhere);
  for (size_t i = 0; i < body.size(); ++i) {
    PackedRoute packed(somewhere);
    auto changed = body;
    changed[i] ^= std::byte{1};
    size_t size = 0;
    const auto expected = decode_route(changed, size);
    const auto taken = packed.take(changed);
    ASSERT_EQ(taken.has_value(), expected.has_value()) << "byte " << i;
    if (!taken) {
      expect_route(packed, somewhere);
      continue;
    }
    EXPECT_EQ(*taken, size);
    expect_route(packed, *expected);
  }
}

TEST(PackedRoute, that_was_cut_off_is_refused_and_changes_nothing) {
  const auto body = encode_route(somewhere);
  const Route elsewhere{.instance = 1, .node_id = 2, .address = "n2"};
  for (size_t size = 0; size < body.size(); ++size) {
    PackedRoute same(somewhere), other(elsewhere);
    EXPECT_FALSE(same.take(ByteView(body).first(size))) << size;
    EXPECT_FALSE(other.take(ByteView(body).first(size))) << size;
    expect_route(same, somewhere);
    expect_route(other, elsewhere);
  }
}

TEST(PackedRoute, holds_the_longest_address_and_cuts_longer_ones) {
  const Route longest{.instance = 1, .node_id = 2, .address = std::string(255, 'h')};
  EXPECT_EQ(PackedRoute(longest).bytes().size(), max_route_bytes);
  const Route longer{.instance = 1, .node_id = 2, .address = std::string(300, 'h')};
  PackedRoute packed;
  ASSERT_TRUE(packed.take(PackedRoute(longer).bytes()));
  expect_route(packed, longest);
}

}  // namespace
}  // namespace tc::wire
