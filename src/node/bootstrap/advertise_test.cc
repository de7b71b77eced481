// SPDX-License-Identifier: Apache-2.0
#include "node/bootstrap/advertise.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>

#include <deque>

namespace tc::node::bootstrap {
namespace {

// A list as getifaddrs() makes it.
class Interfaces {
 public:
  static constexpr unsigned usual = IFF_UP | IFF_RUNNING;

  Interfaces& add(const char* address, unsigned flags = usual) {
    auto& storage = addresses_.emplace_back();
    auto& v4 = reinterpret_cast<sockaddr_in&>(storage);
    auto& v6 = reinterpret_cast<sockaddr_in6&>(storage);
    if (::inet_pton(AF_INET, address, &v4.sin_addr) == 1) {
      storage.ss_family = AF_INET;
    } else {
      EXPECT_EQ(::inet_pton(AF_INET6, address, &v6.sin6_addr), 1) << address;
      storage.ss_family = AF_INET6;
    }
    return link(reinterpret_cast<sockaddr*>(&storage), flags);
  }
  Interfaces& add_without_address() { return link(nullptr, usual); }
  Interfaces& add_of_another_family() {
    addresses_.emplace_back().ss_family = AF_PACKET;
    return link(reinterpret_cast<sockaddr*>(&addresses_.back()), usual);
  }
  std::string first(int family) const { return first_routable(list_.empty() ? nullptr : list_.data(), family); }

 private:
  Interfaces& link(sockaddr* address, unsigned flags) {
    ifaddrs entry{};
    entry.ifa_addr = address;
    entry.ifa_flags = flags;
    list_.push_back(entry);
    for (size_t i = 0; i + 1 < list_.size(); ++i) list_[i].ifa_next = &list_[i + 1];
    return *this;
  }
  std::deque<sockaddr_storage> addresses_;
  std::vector<ifaddrs> list_;
};

TEST(FirstRoutable, is_the_first_address_of_the_family_that_is_asked_for) {
  Interfaces all;
  all.add_without_address().add_of_another_family().add("10.0.0.4").add("fd00::4").add("10.0.0.5").add("fd00::5");
  EXPECT_EQ(all.first(AF_INET), "10.0.0.4");
  EXPECT_EQ(all.first(AF_INET6), "[fd00::4]") << "in brackets, for a port behind it";
  EXPECT_EQ(Interfaces().add("10.0.0.4").first(AF_INET6), "");
  EXPECT_EQ(Interfaces().add("fd00::4").first(AF_INET), "");
  EXPECT_EQ(Interfaces().first(AF_INET), "");
}

TEST(FirstRoutable, is_no_address_that_reaches_the_neighbours_only) {
  EXPECT_EQ(Interfaces().add("fe80::1").add("febf::1").first(AF_INET6), "");
  EXPECT_EQ(Interfaces().add("fe80::1").add("fd00::4").first(AF_INET6), "[fd00::4]");
}

TEST(FirstRoutable, is_of_an_interface_that_is_up_and_no_loopback) {
  constexpr auto usual = Interfaces::usual;
  EXPECT_EQ(Interfaces().add("127.0.0.1", usual | IFF_LOOPBACK).first(AF_INET), "");
  EXPECT_EQ(Interfaces().add("10.0.0.1", IFF_UP).first(AF_INET), "");
  EXPECT_EQ(Interfaces().add("10.0.0.1", IFF_RUNNING).first(AF_INET), "");
  EXPECT_EQ(Interfaces().add("10.0.0.1", 0).add("10.0.0.2").first(AF_INET), "10.0.0.2");
}

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
