// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <optional>

#include "transport/network/named_connection.h"
#include "transport/testing/name_server.h"

namespace tc::transport {
namespace {

using ::testing::HasSubstr;

struct Asker final : NameLookups::Client {
  void on_addresses(const NameLookups::Found& found) noexcept override {
    ++told;
    answer = found;
    if (when_told) when_told();
  }
  unsigned told = 0;
  std::optional<NameLookups::Found> answer;
  std::function<void()> when_told;
};

class Names : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(poller.open()); }
  bool wait_until(const std::function<bool()>& done) {
    for (const auto deadline = Deadline::after_ms(20'000); !done() && !deadline.passed();)
      poller.wait(Deadline::after_ms(10));
    return done();
  }
  static std::vector<SocketAddress> some() { return resolve("192.0.2.1:0", false).value(); }

  Poller poller;
  NameServer server;
  std::optional<NameLookups> lookups{std::in_place, poller, server.resolver()};
};

TEST_F(Names, that_are_asked_twice_at_the_same_time_are_looked_up_once) {
  Asker one, two, later;
  ASSERT_TRUE(lookups->start("a", one));
  ASSERT_TRUE(wait_until([&] { return server.asked("a") == 1; }));
  ASSERT_TRUE(lookups->start("a", two));
  server.answer("a", some());
  ASSERT_TRUE(wait_until([&] { return one.told == 1 && two.told == 1; }));
  EXPECT_EQ(server.asked("a"), 1u);
  EXPECT_EQ(two.answer->value().front().host(), "192.0.2.1");
  ASSERT_TRUE(lookups->start("a", later));
  ASSERT_TRUE(wait_until([&] { return later.told == 1; }));
  EXPECT_EQ(server.asked("a"), 2u) << "an answer is for those who waited for it";
}

TEST_F(Names, whose_server_is_silent_do_not_hold_up_others) {
  Asker silent, other;
  ASSERT_TRUE(lookups->start("silent", silent));
  ASSERT_TRUE(wait_until([&] { return server.asked("silent") == 1; }));
  server.answer("b", some());
  ASSERT_TRUE(lookups->start("b", other));
  ASSERT_TRUE(wait_until([&] { return other.told == 1; }));
  EXPECT_EQ(silent.told, 0u);
}

TEST_F(Names, wait_in_a_queue_that_has_a_limit) {
  std::deque<Asker> askers(NameLookups::most_running + NameLookups::most_waiting);
  for (size_t i = 0; i < askers.size(); ++i) {
    ASSERT_TRUE(lookups->start("silent" + std::to_string(i), askers[i])) << i;
    if (i < NameLookups::most_running) {
      ASSERT_TRUE(wait_until([&] { return server.asked("silent" + std::to_string(i)) == 1; }));
    }
  }
  Asker same, more;
  EXPECT_TRUE(lookups->start("silent" + std::to_string(askers.size() - 1), same)) << "it costs no more";
  const auto refused = lookups->start("more", more);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, TC_ERR_LIMIT);
  EXPECT_THAT(refused.error().message, HasSubstr("'more'"));
  lookups->cancel(askers.back());
  EXPECT_FALSE(lookups->start("more", more)) << "another client waits for that name";
  lookups->cancel(same);
  EXPECT_TRUE(lookups->start("more", more)) << "now nobody does";
  for (size_t i = 0; i < askers.size(); ++i) server.answer("silent" + std::to_string(i), some());
  server.answer("more", fail(TC_ERR_NOT_FOUND, "no such name"));
  const auto is_told = [](const Asker& asker) { return asker.told == 1; };
  ASSERT_TRUE(wait_until([&] { return is_told(more) && std::all_of(askers.begin(), askers.end() - 1, is_told); }));
  EXPECT_EQ(more.answer->error().message, "no such name");
  EXPECT_EQ(askers.back().told, 0u);
}

TEST_F(Names, are_told_to_clients_that_cancel_each_other_and_ask_again) {
  Asker one, two;
  one.when_told = [&] {
    lookups->cancel(two);
    if (one.told == 1) {
      EXPECT_TRUE(lookups->start("a", one));
    }
  };
  ASSERT_TRUE(lookups->start("a", one));
  ASSERT_TRUE(lookups->start("a", two));
  server.answer("a", some());
  ASSERT_TRUE(wait_until([&] { return one.told == 2; }));
  EXPECT_EQ(two.told, 0u);
}

TEST_F(Names, that_nobody_tells_are_left_behind_when_the_lookups_end) {
  Asker silent;
  ASSERT_TRUE(lookups->start("silent", silent));
  ASSERT_TRUE(wait_until([&] { return server.asked("silent") == 1; }));
  lookups.reset();  // the server is silent until the end of this test
  server.answer("silent", some());
  poller.wait(Deadline::after_ms(20));
  EXPECT_EQ(silent.told, 0u);
}

}  // namespace
}  // namespace tc::transport
