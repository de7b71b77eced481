// SPDX-License-Identifier: Apache-2.0
#include "base/address_range.h"

#include <gtest/gtest.h>

namespace tc {
namespace {

AddressRange range(std::string_view text) { return AddressRange::parse(text).value(); }

TEST(AddressRange, contains_the_addresses_that_begin_alike) {
  EXPECT_TRUE(range("10.0.0.0/8").contains("10.255.1.2"));
  EXPECT_FALSE(range("10.0.0.0/8").contains("11.0.0.0"));
  EXPECT_TRUE(range("192.168.4.0/22").contains("192.168.7.255"));
  EXPECT_FALSE(range("192.168.4.0/22").contains("192.168.8.0"));
  EXPECT_TRUE(range("fd00::/8").contains("fdff::1"));
  EXPECT_FALSE(range("fd00::/8").contains("fe00::1"));
}

TEST(AddressRange, an_address_alone_is_a_range_of_one) {
  EXPECT_TRUE(range("10.0.0.1").contains("10.0.0.1"));
  EXPECT_FALSE(range("10.0.0.1").contains("10.0.0.2"));
  EXPECT_TRUE(range("::1").contains("::1"));
}

TEST(AddressRange, zero_bits_are_everybody_of_one_kind) {
  EXPECT_TRUE(range("0.0.0.0/0").contains("203.0.113.9"));
  EXPECT_FALSE(range("0.0.0.0/0").contains("::1"));
  EXPECT_TRUE(range("::/0").contains("203.0.113.9"));
}

TEST(AddressRange, an_address_mapped_into_ipv6_counts_as_ipv4) {
  EXPECT_TRUE(range("10.0.0.0/8").contains("::ffff:10.1.2.3"));
}

TEST(AddressRange, what_is_no_range_is_refused_with_the_reason) {
  for (const auto* text : {"", "10.0.0", "10.0.0.0/", "10.0.0.0/33", "10.0.0.0/-1", "10.0.0.0/8x", "fd00::/129",
                           "node.example", "10.0.0.1/8", "fd00::1/8"}) {
    const auto parsed = AddressRange::parse(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_EQ(parsed.error().code, TC_ERR_INVALID);
  }
}

TEST(AddressRange, contains_no_name) { EXPECT_FALSE(range("0.0.0.0/0").contains("localhost")); }

}  // namespace
}  // namespace tc
