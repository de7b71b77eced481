// SPDX-License-Identifier: Apache-2.0
#include "ifunc-top/rates.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <limits>

namespace tc::top {
namespace {

constexpr uint64_t most = std::numeric_limits<uint64_t>::max();
const std::string no_times = "0,0,0,0,0,0,0,0,0,0,0,0,0,0,0";

Told told(double uptime_s, const std::string& lines) {
  const auto parsed =
      command::parse_told(fmt::format("name n\nuptime-ns {}\n{}", static_cast<uint64_t>(uptime_s * 1e9), lines));
  EXPECT_TRUE(parsed) << parsed.error().message;
  return *parsed;
}

std::string ifunc(uint64_t calls, uint64_t failures, const std::string& run, const std::string& name) {
  return fmt::format("ifunc {} {} {} {} {}\n", calls, failures, run, run, name);
}

TEST(TopRates, are_of_the_nodes_own_seconds) {
  const auto rates = rates_between(told(10, "stat executed 100\nstat failures 2\nstat links 3\n"),
                                   told(14, "stat executed 300\nstat failures 4\nstat links 5\n"));
  EXPECT_EQ(rates.calls, 50);
  EXPECT_EQ(rates.failures, 0.5);
  EXPECT_EQ(rates.links, 5u);
  ASSERT_EQ(rates.numbers.size(), 3u);
  EXPECT_EQ(rates.numbers[0].per_s, 50);
}

TEST(TopRates, need_two_looks_and_time_between_them) {
  const auto now = told(14, "stat executed 300\n" + ifunc(7, 0, no_times, "f") + "link shm 1 2 3 4 peer\n");
  for (const auto& before : {std::optional<Told>(), std::optional(now)}) {
    const auto rates = rates_between(before, now);
    EXPECT_FALSE(rates.calls || rates.failures || rates.received || rates.sent);
    ASSERT_EQ(rates.ifuncs.size(), 1u);
    EXPECT_FALSE(rates.ifuncs[0].calls_per_s || rates.ifuncs[0].busy());
    EXPECT_EQ(rates.ifuncs[0].calls, 7u);
    ASSERT_EQ(rates.links_by_peer.size(), 1u);
    EXPECT_FALSE(rates.links_by_peer[0].received_per_s);
    EXPECT_FALSE(rates.numbers[0].per_s);
  }
}

TEST(TopRates, begin_anew_with_the_node) {
  const auto before = told(10, "stat executed 100\n");
  EXPECT_FALSE(rates_between(before, told(3, "stat executed 300\n")).calls) << "it has been there for less long";
  EXPECT_FALSE(rates_between(before, told(12, "stat executed 30\n")).calls) << "it has counted less";
}

TEST(TopRates, of_a_counter_that_went_down_are_none) {
  const auto rates = rates_between(
      told(10, "stat executed 1\nstat links 9\n" + ifunc(100, 5, no_times, "f") + "link tcp 9 900 9 0 p\n"),
      told(11, "stat executed 1\nstat links 8\n" + ifunc(40, 6, no_times, "f") + "link tcp 10 100 19 0 p\n"));
  EXPECT_FALSE(rates.ifuncs[0].calls_per_s);
  EXPECT_EQ(rates.ifuncs[0].failures_per_s, 1);
  EXPECT_FALSE(rates.links_by_peer[0].received_per_s);
  EXPECT_EQ(rates.links_by_peer[0].sent_per_s, 10);
  EXPECT_FALSE(rates.numbers[1].per_s);
}

TEST(TopRates, near_the_greatest_number_stay_what_they_are) {
  const auto rates = rates_between(told(1, fmt::format("stat executed {}\n", most - 10)),
                                   told(2, fmt::format("stat executed {}\n", most)));
  EXPECT_EQ(rates.calls, 10);
  const auto twice = ifunc(most, most, fmt::format("{0},{0},{0},0,0,0,0,0,0,0,0,0,0,0,0", most), "f");
  const auto sums = rates_between({}, told(1, twice + twice));
  ASSERT_EQ(sums.ifuncs.size(), 1u);
  EXPECT_EQ(sums.ifuncs[0].calls, most);
  EXPECT_EQ(sums.ifuncs[0].run.ever.sum_ns, most);
  EXPECT_EQ(sums.ifuncs[0].run.p99(), 1u);
  const std::vector<NodeRates> nodes{sums, sums};
  EXPECT_EQ(sum_of_ifuncs(nodes)[0].failures, most);
}

TEST(TopRates, of_what_is_new_begin_at_nothing_unless_more_is_there_than_is_told) {
  const auto now = told(2, ifunc(50, 0, no_times, "new") + "link shm 7 70 0 0 new\n");
  EXPECT_EQ(rates_between(told(1, ""), now).ifuncs[0].calls_per_s, 50);
  EXPECT_EQ(rates_between(told(1, ""), now).links_by_peer[0].received_per_s, 70);
  std::string many;
  for (int i = 0; i < 100; ++i)
    many += ifunc(1, 0, no_times, fmt::format("f{}", i)) + fmt::format("link shm 1 1 1 1 p{}\n", i);
  EXPECT_FALSE(rates_between(told(1, many), now).ifuncs[0].calls_per_s);
  EXPECT_FALSE(rates_between(told(1, many), now).links_by_peer[0].received_per_s);
}

TEST(TopRates, have_the_times_of_late_or_those_of_ever) {
  const auto before = told(10, ifunc(100, 0, "1000,90,10,0,0,0,0,0,0,0,0,0,0,0,0", "f"));
  const auto now = told(12, ifunc(300, 0, "201000,90,10,100,0,0,0,0,0,0,0,0,0,0,0", "f"));
  const auto rates = rates_between(before, now);
  EXPECT_EQ(rates.ifuncs[0].run.mean_ns(), 2000);
  EXPECT_EQ(rates.ifuncs[0].run.p99(), 2u);
  EXPECT_DOUBLE_EQ(*rates.ifuncs[0].busy(), 100 * 2000 / 1e9);
  const auto quiet = rates_between(now, told(13, ifunc(301, 0, "201000,90,10,100,0,0,0,0,0,0,0,0,0,0,0", "f")));
  EXPECT_EQ(quiet.ifuncs[0].run.mean_ns(), 201'000.0 / 200);
  const auto never = rates_between({}, told(13, ifunc(301, 0, no_times, "f")));
  EXPECT_FALSE(never.ifuncs[0].run.mean_ns() || never.ifuncs[0].run.p99());
}

TEST(TopRates, of_a_hundred_calls_leave_out_the_slowest_and_not_the_second) {
  Durations one, two;
  one.ever.counts[0] = 99, one.ever.counts[13] = 1;
  two.ever.counts[0] = 98, two.ever.counts[13] = 2;
  EXPECT_EQ(one.p99(), 0u);
  EXPECT_EQ(two.p99(), 13u);
}

TEST(TopRates, of_several_nodes_are_summed_by_name) {
  const auto one = rates_between(told(1, ifunc(0, 0, no_times, "f")), told(2, ifunc(10, 1, no_times, "f")));
  const auto two = rates_between(told(5, ifunc(0, 0, no_times, "f")),
                                 told(7, ifunc(10, 0, no_times, "f") + ifunc(1, 0, no_times, "g")));
  const std::vector nodes{one, two, rates_between({}, told(1, ifunc(3, 0, no_times, "f")))};
  const auto sums = sum_of_ifuncs(nodes);
  ASSERT_EQ(sums.size(), 2u);
  EXPECT_EQ(sums[0].name, "f");
  EXPECT_EQ(sums[0].calls_per_s, 15);
  EXPECT_EQ(sums[0].failures_per_s, 1);
  EXPECT_EQ(sums[0].calls, 23u);
  EXPECT_EQ(sums[1].name, "g");
}

TEST(TopRates, of_links_to_the_same_peer_are_one_and_make_those_of_the_node) {
  const auto rates = rates_between(told(1, "link shm 1 100 10 0 p\nlink shm 1 100 10 0 p\nlink tls 0 0 0 0 q\n"),
                                   told(2, "link shm 2 150 10 5 p\nlink shm 2 150 30 5 p\nlink tls 0 7 0 0 q\n"));
  ASSERT_EQ(rates.links_by_peer.size(), 2u);
  EXPECT_EQ(rates.links_by_peer[0].calls_per_s, 2);
  EXPECT_EQ(rates.links_by_peer[0].waiting_bytes, 10u);
  EXPECT_EQ(rates.received, 107);
  EXPECT_EQ(rates.sent, 20);
}

TEST(TopRates, of_bytes_have_those_of_links_that_have_ended) {
  const auto rates = rates_between(told(1, "stat received-bytes 100\nstat sent-bytes 10\nlink shm 1 100 10 0 p\n"),
                                   told(2, "stat received-bytes 400\nstat sent-bytes 50\nlink shm 1 7 7 0 q\n"));
  EXPECT_EQ(rates.received, 300);
  EXPECT_EQ(rates.sent, 40);
}

}  // namespace
}  // namespace tc::top
