// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "transport/network/admission.h"

namespace tc::transport {
namespace {

constexpr PendingLimits pending_limits{.of_one_host = 2, .of_all_hosts = 4, .of_our_user = 3};
constexpr std::string_view ours{};

// All that may go, whatever the random number is; a host with a star has proved its key.
std::set<size_t> go(std::vector<std::string_view> waiting, std::string_view host) {
  std::vector<PendingCount> counts;
  for (auto one : waiting) {
    const bool proved = one.ends_with('*');
    counts.push_back({proved ? one.substr(0, one.size() - 1) : one, proved});
  }
  std::set<size_t> all;
  for (uint64_t random = 0; random < 100; ++random)
    if (const auto index = pending_to_evict(counts, host, pending_limits, random)) all.insert(*index);
  return all;
}

using Indices = std::set<size_t>;

TEST(PendingLimits, while_there_is_room_none_is_evicted) {
  EXPECT_EQ(go({}, "a"), Indices());
  EXPECT_EQ(go({"a"}, "a"), Indices());
  EXPECT_EQ(go({"a", "b", "c"}, "d"), Indices());
  EXPECT_EQ(go({ours, ours}, ours), Indices());
  EXPECT_EQ(go({"a", "a"}, "b"), Indices());
}

TEST(PendingLimits, one_more_from_a_host_evicts_any_of_that_host) {
  EXPECT_EQ(go({"b", "a", "c", "a"}, "a"), (Indices{1, 3}));
  EXPECT_EQ(go({"a", "b", "c", "d", "d"}, "d"), (Indices{3, 4}));
}

TEST(PendingLimits, when_all_hosts_together_have_too_many_one_of_the_host_with_most_goes) {
  EXPECT_EQ(go({"a", "b", "b", "c"}, "e"), (Indices{1, 2}));
  EXPECT_EQ(go({"a", "b", "b", "c"}, "a"), (Indices{1, 2})) << "who has few may have one more";
  EXPECT_EQ(go({ours, ours, ours, "b", "c", "d", "e"}, "f").size(), 1u);
  EXPECT_EQ(go({ours, ours, ours, "b", "c", "d", "e"}, "f").count(0), 0u) << "never one of our own user's";
}

TEST(PendingLimits, who_has_proved_its_key_goes_only_when_all_of_its_host_have) {
  EXPECT_EQ(go({"a*", "a"}, "a"), Indices{1});
  EXPECT_EQ(go({"a", "a*"}, "a"), Indices{0});
  EXPECT_EQ(go({"a*", "a*"}, "a"), (Indices{0, 1}));
  EXPECT_EQ(go({"c", "b*", "b", "d"}, "e"), Indices{2});
}

TEST(PendingLimits, our_own_user_and_all_others_are_counted_apart) {
  EXPECT_EQ(go({"a", "a", "b", "b"}, ours), Indices());
  EXPECT_EQ(go({ours, ours, ours}, "a"), Indices());
  EXPECT_EQ(go({"a", ours, ours, ours}, ours), (Indices{1, 2, 3}));
}

TEST(PendingLimits, each_of_a_host_goes_as_often_as_the_others) {
  const PendingLimits limits{.of_one_host = 128};
  const std::vector<PendingCount> waiting(128, {"a"});
  std::vector<int> gone(waiting.size());
  for (uint64_t random = 0; random < 10 * waiting.size(); ++random)
    ++gone[pending_to_evict(waiting, "a", limits, random).value()];
  EXPECT_EQ(gone, std::vector<int>(waiting.size(), 10));
}

TEST(PendingLimits, the_limits_hold_for_any_number_of_peers) {
  std::vector<std::string> hosts;
  for (int i = 0; i < 100; ++i) hosts.push_back(std::to_string(i % 7));
  std::vector<PendingCount> waiting;
  for (const auto& host : hosts) {
    if (const auto index = pending_to_evict(waiting, host, pending_limits, waiting.size()))
      waiting.erase(waiting.begin() + static_cast<std::ptrdiff_t>(*index));
    waiting.push_back({host});
    EXPECT_LE(waiting.size(), pending_limits.of_all_hosts);
    EXPECT_LE(static_cast<size_t>(std::ranges::count(waiting, host, &PendingCount::host)), pending_limits.of_one_host);
  }
}

TEST(PendingLimits, an_ipv6_network_is_one_host_and_an_ipv4_address_is) {
  EXPECT_EQ(counted_host("10.0.0.1"), "10.0.0.1");
  EXPECT_EQ(counted_host("2001:db8:0:7::1"), "2001:db8:0:7::/64");
  EXPECT_EQ(counted_host("2001:db8:0:7:ffff:ffff:ffff:ffff"), "2001:db8:0:7::/64");
  EXPECT_NE(counted_host("2001:db8:0:8::1"), counted_host("2001:db8:0:7::1"));
  EXPECT_EQ(counted_host("fe80::1%eth0"), "fe80::1%eth0") << "of this link alone";
  EXPECT_EQ(counted_host("unknown"), "unknown");
}

}  // namespace
}  // namespace tc::transport
