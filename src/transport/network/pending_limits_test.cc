// SPDX-License-Identifier: Apache-2.0
#include "transport/network/pending_limits.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace tc::transport {
namespace {

constexpr PendingLimits pending_limits{.of_one_host = 2, .of_all_hosts = 4, .of_our_user = 3};
constexpr std::string_view ours{};

std::optional<size_t> goes(std::vector<std::string_view> waiting, std::string_view host) {
  return pending_to_evict(waiting, host, pending_limits);
}

TEST(PendingLimits, while_there_is_room_none_is_evicted) {
  EXPECT_EQ(goes({}, "a"), std::nullopt);
  EXPECT_EQ(goes({"a"}, "a"), std::nullopt);
  EXPECT_EQ(goes({"a", "b", "c"}, "d"), std::nullopt);
  EXPECT_EQ(goes({ours, ours}, ours), std::nullopt);
}

TEST(PendingLimits, one_more_from_a_host_evicts_the_oldest_of_that_host) {
  EXPECT_EQ(goes({"b", "a", "c", "a"}, "a"), 1u);
  EXPECT_EQ(goes({"a", "a"}, "b"), std::nullopt);
}

TEST(PendingLimits, when_all_hosts_together_have_too_many_the_oldest_is_evicted) {
  EXPECT_EQ(goes({"a", "b", "c", "d"}, "e"), 0u);
  EXPECT_EQ(goes({ours, "b", "c", "d", "e"}, "f"), 1u) << "never one of our own user's";
}

TEST(PendingLimits, our_own_user_and_all_others_are_counted_apart) {
  EXPECT_EQ(goes({"a", "a", "b", "b"}, ours), std::nullopt);
  EXPECT_EQ(goes({ours, ours, ours}, "a"), std::nullopt);
  EXPECT_EQ(goes({"a", ours, ours, ours}, ours), 1u);
}

TEST(PendingLimits, the_limits_hold_for_any_number_of_peers) {
  std::vector<std::string> hosts;
  for (int i = 0; i < 100; ++i) hosts.push_back(std::to_string(i % 7));
  std::vector<std::string_view> waiting;
  for (const auto& host : hosts) {
    if (const auto index = pending_to_evict(waiting, host, pending_limits))
      waiting.erase(waiting.begin() + static_cast<std::ptrdiff_t>(*index));
    waiting.push_back(host);
    EXPECT_LE(waiting.size(), pending_limits.of_all_hosts);
    EXPECT_LE(static_cast<size_t>(std::ranges::count(waiting, std::string_view(host))), pending_limits.of_one_host);
  }
}

}  // namespace
}  // namespace tc::transport
