// SPDX-License-Identifier: Apache-2.0
//
// Calls that wait: which of them end when, and what those cost that do not.
#include "node/future.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace tc::node {
namespace {

constexpr uint64_t ms = 1'000'000;
constexpr uint64_t begin_ns = 1'000'000 * ms;  // some time after the machine started

class Futures : public testing::Test {
 protected:
  std::shared_ptr<Future> add(uint64_t deadline_ns, FuturesOfLink& of_link) {
    auto future = std::make_shared<Future>();
    future->deadline_ns = deadline_ns;
    table.add(future, of_link);
    return future;
  }
  std::shared_ptr<Future> add(uint64_t deadline_ns) { return add(deadline_ns, link); }

  FuturesOfLink link, other_link;
  FutureTable table;
};

TEST_F(Futures, those_without_a_deadline_are_never_looked_at) {
  for (int i = 0; i < 1000; ++i) add(0);
  EXPECT_EQ(table.next_deadline_ns(), 0u);
  EXPECT_EQ(table.expire(begin_ns), 0u);
  const auto late = add(begin_ns + 20 * ms);
  size_t looks = 0;
  for (int i = 0; i < 100; ++i) looks += table.expire(begin_ns + i * ms);
  EXPECT_EQ(looks, 1u);
  EXPECT_EQ(late->status, TC_ERR_TIMEOUT);
  EXPECT_EQ(table.size(), 1000u);
}

TEST_F(Futures, one_that_waits_for_long_is_seldom_looked_at) {
  constexpr int count = 1000;
  for (int i = 0; i < count; ++i) add(begin_ns + 3'600'000 * ms + i * ms);
  size_t looks = 0;
  for (int i = 0; i < 10'000; ++i) {
    add(begin_ns + (i + 1) * ms);  // so that each millisecond has something to do
    looks += table.expire(begin_ns + i * ms);
  }
  EXPECT_LT(looks, 10'000u * 5 + count * 3 * 3) << "a few times each turn of 4.3 s, not each millisecond";
}

TEST_F(Futures, each_ends_at_its_deadline_and_not_before_whatever_comes_and_goes_meanwhile) {
  auto now = begin_ns;
  for (const unsigned seed : {1u, 2u, 3u}) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    std::multimap<uint64_t, std::shared_ptr<Future>> waiting;  // by deadline
    for (int step = 0; step < 3000; ++step) {
      if (random() % 3 != 0) {
        constexpr uint64_t spans_ms[] = {1, 5, 1000, 4296, 10'000, 3'600'000};
        const auto deadline = now + random() % (spans_ms[random() % std::size(spans_ms)] * ms);
        waiting.emplace(deadline, add(deadline));
      } else if (!waiting.empty()) {  // it is answered, or its owner lost interest
        auto one = waiting.lower_bound(now + random() % (10'000 * ms));
        if (one == waiting.end()) one = waiting.begin();
        if (random() % 2 == 0)
          EXPECT_TRUE(table.complete({.token = one->second->token}, {}));
        else
          table.forget(*one->second);
        waiting.erase(one);
      }
      now += random() % 8 != 0 ? random() % (3 * ms) : random() % (6000 * ms);
      if (!waiting.empty()) {
        ASSERT_LE(table.next_deadline_ns(), waiting.begin()->first);
        ASSERT_NE(table.next_deadline_ns(), 0u);
      }
      table.expire(now);
      for (; !waiting.empty() && waiting.begin()->first <= now; waiting.erase(waiting.begin()))
        ASSERT_EQ(waiting.begin()->second->status, TC_ERR_TIMEOUT);
      ASSERT_EQ(table.size(), waiting.size());
    }
    table.fail_all(Error{TC_ERR_CLOSED, "the end"});
    for (const auto& [deadline, future] : waiting) ASSERT_EQ(future->status, TC_ERR_CLOSED);
    EXPECT_EQ(link.first(), nullptr);
    EXPECT_TRUE(table.empty());
  }
}

TEST_F(Futures, only_calls_that_had_left_when_a_node_died_may_be_lost_with_it) {
  const auto left = add(0), waits_for_room = add(begin_ns);
  table.set_sent(*left);
  EXPECT_TRUE(table.maybe_lost().empty());
  table.record_peer_failure(3, "node 3 (three)");
  const auto later = add(0);
  table.set_sent(*later);
  EXPECT_EQ(table.maybe_lost(), std::vector{left->token});
  table.fail_lost(left->token);
  EXPECT_EQ(left->status, TC_ERR_DISCONNECTED);
  EXPECT_EQ(left->node_id, 3u);
  EXPECT_NE(left->message.find("node 3 (three) died"), std::string::npos) << left->message;
  table.expire(begin_ns);
  EXPECT_EQ(waits_for_room->message.find("died"), std::string::npos) << waits_for_room->message;
}

TEST_F(Futures, a_lost_link_ends_its_own_alone) {
  std::vector<std::shared_ptr<Future>> own, others;
  for (int i = 0; i < 10; ++i) {
    own.push_back(add(0, link));
    others.push_back(add(begin_ns, other_link));
  }
  table.forget(*own[3]);
  table.fail_those(link, Error{TC_ERR_DISCONNECTED, "it is gone"});
  for (size_t i = 0; i < own.size(); ++i) EXPECT_EQ(own[i]->ready, i != 3);
  for (const auto& future : others) EXPECT_FALSE(future->ready);
  EXPECT_EQ(link.first(), nullptr);
  EXPECT_EQ(table.expire(begin_ns), 10u);
  EXPECT_EQ(other_link.first(), nullptr);
}

TEST_F(Futures, one_that_is_forgotten_while_others_are_told_is_not_told) {
  struct Owner {
    FutureTable& table;
    std::vector<std::shared_ptr<Future>> futures;
    int told = 0;
  } owner{table, {}};
  for (int i = 0; i < 4; ++i) {
    owner.futures.push_back(add(begin_ns));
    table.notify_when_ready(
        *owner.futures.back(),
        [](void* context) noexcept {
          auto& all = *static_cast<Owner*>(context);
          ++all.told;
          for (const auto& future : all.futures) all.table.forget(*future);
        },
        &owner);
  }
  table.expire(begin_ns);
  EXPECT_TRUE(table.has_notifications());
  table.notify_ready();
  EXPECT_EQ(owner.told, 1);
  EXPECT_FALSE(table.has_notifications());
}

}  // namespace
}  // namespace tc::node
