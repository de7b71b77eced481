// SPDX-License-Identifier: Apache-2.0
#include "transport/network/admission.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace tc::transport {
namespace {

constexpr AdmissionLimits limits{.of_one_host = 2, .of_all_hosts = 4, .of_our_user = 3};
constexpr std::string_view ours{};

std::optional<size_t> goes(std::vector<std::string_view> waiting, std::string_view host) {
  return who_must_go(waiting, host, limits);
}

TEST(Admission, while_there_is_room_nobody_goes) {
  EXPECT_EQ(goes({}, "a"), std::nullopt);
  EXPECT_EQ(goes({"a"}, "a"), std::nullopt);
  EXPECT_EQ(goes({"a", "b", "c"}, "d"), std::nullopt);
  EXPECT_EQ(goes({ours, ours}, ours), std::nullopt);
}

TEST(Admission, one_more_from_a_host_costs_that_hosts_oldest) {
  EXPECT_EQ(goes({"b", "a", "c", "a"}, "a"), 1u);
  EXPECT_EQ(goes({"a", "a"}, "b"), std::nullopt);
}

TEST(Admission, when_all_hosts_together_are_too_many_the_oldest_stranger_goes) {
  EXPECT_EQ(goes({"a", "b", "c", "d"}, "e"), 0u);
  EXPECT_EQ(goes({ours, "b", "c", "d", "e"}, "f"), 1u) << "never one of our own user's";
}

TEST(Admission, strangers_cost_our_own_user_nothing_and_it_costs_them_nothing) {
  EXPECT_EQ(goes({"a", "a", "b", "b"}, ours), std::nullopt);
  EXPECT_EQ(goes({ours, ours, ours}, "a"), std::nullopt);
  EXPECT_EQ(goes({"a", ours, ours, ours}, ours), 1u);
}

TEST(Admission, the_limits_hold_however_many_come) {
  std::vector<std::string> hosts;
  for (int i = 0; i < 100; ++i) hosts.push_back(std::to_string(i % 7));
  std::vector<std::string_view> waiting;
  for (const auto& host : hosts) {
    if (const auto index = who_must_go(waiting, host, limits))
      waiting.erase(waiting.begin() + static_cast<std::ptrdiff_t>(*index));
    waiting.push_back(host);
    EXPECT_LE(waiting.size(), limits.of_all_hosts);
    EXPECT_LE(static_cast<size_t>(std::ranges::count(waiting, std::string_view(host))), limits.of_one_host);
  }
}

}  // namespace
}  // namespace tc::transport
