// SPDX-License-Identifier: Apache-2.0
#include "node/bootstrap/advertise.h"

#include <gtest/gtest.h>

namespace tc::node::bootstrap {
namespace {

TEST(AdvertisedAddress, is_where_the_node_listens_when_others_can_use_that) {
  EXPECT_EQ(advertised_address("127.0.0.1:41234", ""), "127.0.0.1:41234");
  EXPECT_EQ(advertised_address("[::1]:5", ""), "[::1]:5");
  EXPECT_EQ(advertised_address("10.0.0.4:5", ""), "10.0.0.4:5");
}

TEST(AdvertisedAddress, is_never_a_wildcard) {
  for (const auto* bound : {"0.0.0.0:7000", "[::]:7000"}) {
    const auto address = advertised_address(bound, "");
    ASSERT_TRUE(address) << address.error().message;
    EXPECT_TRUE(address->ends_with(":7000")) << *address;
    EXPECT_FALSE(address->starts_with("0.0.0.0") || address->starts_with("[::]")) << *address;
  }
}

TEST(AdvertisedAddress, is_what_the_operator_says_with_the_real_port_unless_he_names_one) {
  EXPECT_EQ(advertised_address("0.0.0.0:7000", "login3.example"), "login3.example:7000");
  EXPECT_EQ(advertised_address("0.0.0.0:7000", "10.1.2.3:80"), "10.1.2.3:80");
  EXPECT_EQ(advertised_address("[::]:7000", "[fd00::1]"), "[fd00::1]:7000");
  EXPECT_EQ(advertised_address("[::]:7000", "[fd00::1]:80"), "[fd00::1]:80");
  EXPECT_FALSE(advertised_address("0.0.0.0:7000", "two words"));
  EXPECT_FALSE(advertised_address("0.0.0.0:7000", std::string(300, 'a')));
}

}  // namespace
}  // namespace tc::node::bootstrap
