// SPDX-License-Identifier: Apache-2.0
//
// Two nodes and a network that loses, repeats, cuts and turns bits: every call ends in time, no call that was reported
// to be done is done twice or not at all, and a fresh link works as if nothing had been.
#include "node/testing/node_test_kit.h"

namespace tc::node::test {
namespace {

using transport::Faults;

struct Outcome {
  uint64_t ok = 0, failed = 0;
};

enum class Network { loses_nothing, loses_messages, turns_bits };

// Many calls in flight under the faults. Answers say how many calls had been run when they were: on a link that keeps
// its promises the n-th call is the n-th that runs, so an answer with another number is a call lost or run twice. Where
// messages are lost, the deadline is let pass when no call has ended for a while.
Outcome storm(const Faults& faults, size_t calls, Network kind) {
  constexpr auto deadline = std::chrono::seconds(60);
  const bool is_whole = kind == Network::loses_nothing;
  Net net;
  auto target = net.make(1);
  auto source = net.make(2);
  uint64_t ran = 0;
  static uint64_t* counter;
  counter = &ran;
  target->policy().export_symbol("application_answer",
                                 reinterpret_cast<void*>(+[]() -> uint64_t { return ++*counter; }));
  std::vector<std::shared_ptr<Future>> futures;
  Outcome outcome;
  {
    const Background running(*target);
    auto* link = test::connect(*source, "n1");
    const auto message = test::message(*source, "exported", "");
    EXPECT_EQ(test::call(*source, *link, *message)->status, TC_OK);
    net.network.set_faults(faults);
    for (size_t i = 0; i < calls; ++i) {
      auto future = source->call(*link, *message, 60'000, Deadline::after_ms(is_whole ? 20'000 : 200));
      if (future)
        futures.push_back(std::move(*future));
      else
        ++outcome.failed;
      if (i % 3 == 0) source->poll();
    }
    const auto all_done = [&] { return all_ready(futures); };
    source->poll_until(Deadline::after_ms(is_whole ? 40'000 : 500), all_done);
    if (!is_whole) test::let_pass(deadline);
    source->poll_until(Deadline::after_ms(20'000), all_done);
    EXPECT_TRUE(all_ready(futures)) << "every call ends, at its deadline at the latest";
    net.network.set_faults({});
    auto* fresh = test::connect(*source, "n1");
    EXPECT_EQ(test::call(*source, *fresh, *test::message(*source, "echo", "as ever"))->status, TC_OK);
  }
  for (size_t i = 0; i < futures.size(); ++i) {
    const auto& future = *futures[i];
    if (future.status != TC_OK) {
      EXPECT_FALSE(future.message.empty());
      ++outcome.failed;
      continue;
    }
    ++outcome.ok;
    uint64_t number = 0;
    if (kind != Network::turns_bits) {
      EXPECT_EQ(future.bytes.size(), sizeof number);
      std::memcpy(&number, future.bytes.data(), std::min(sizeof number, future.bytes.size()));
      EXPECT_EQ(number, i + 2) << "call " << i << " was not the one that ran as number " << number;
    }
  }
  return outcome;
}

TEST(Faults, without_any_all_calls_are_done) {
  const auto outcome = storm({}, 500, Network::loses_nothing);
  EXPECT_EQ(outcome.ok, 500u);
}

TEST(Faults, lost_messages_never_make_a_lost_call_look_done) {
  for (const unsigned every : {2u, 3u, 7u, 50u}) {
    const auto outcome = storm({.drop_every = every}, 200, Network::loses_messages);
    EXPECT_GT(outcome.failed, 0u) << every;
  }
}

TEST(Faults, repeated_messages_never_make_a_call_run_twice) {
  for (const unsigned every : {1u, 2u, 5u, 40u}) {
    const auto outcome = storm({.duplicate_every = every}, 200, Network::loses_messages);
    EXPECT_GT(outcome.failed, 0u) << every;
  }
}

TEST(Faults, messages_cut_short_cost_the_link_and_nothing_else) {
  for (const unsigned every : {1u, 4u, 33u}) {
    const auto outcome = storm({.truncate_every = every}, 200, Network::loses_messages);
    EXPECT_GT(outcome.failed, 0u) << every;
  }
}

// There is no checksum: the networks below have theirs. What a turned bit may do is change data, not break a node.
TEST(Faults, turned_bits_crash_nobody_and_every_call_ends) {
  for (const unsigned every : {1u, 2u, 3u, 11u}) storm({.flip_every = every}, 200, Network::turns_bits);
}

TEST(Faults, a_slow_network_is_only_slow) {
  const auto outcome = storm({.delay_progress = 5}, 200, Network::loses_nothing);
  EXPECT_EQ(outcome.ok, 200u);
}

TEST(Faults, a_network_that_is_cut_fails_every_call_on_its_way_by_name) {
  Net net;
  auto target = net.make(1);
  auto source = net.make(2);
  Link* link = nullptr;
  {
    const Background running(*target);
    link = test::connect(*source, "n1");
  }
  const auto message = test::message(*source, "echo", "x");
  std::vector<std::shared_ptr<Future>> futures;
  for (int i = 0; i < 300; ++i)
    futures.push_back(source->call(*link, *message, 60'000, Deadline::after_ms(100)).value());
  net.network.set_faults({.disconnect = true});
  source->poll_until(Deadline::after_ms(20'000), [&] { return link->state() == Link::State::lost; });
  for (const auto& future : futures) {
    ASSERT_TRUE(future->ready.load());
    EXPECT_EQ(future->status, TC_ERR_DISCONNECTED);
    EXPECT_THAT(future->message, testing::HasSubstr("node 1 (test1)"));
  }
  net.network.set_faults({});
  const Background running(*target);
  EXPECT_EQ(test::call(*source, *test::connect(*source, "n1"), *message)->status, TC_OK);
}

TEST(Faults, plain_calls_that_a_flush_reports_done_all_ran) {
  for (const unsigned every : {9u, 30u}) {
    Net net;
    auto target = net.make(1);
    auto source = net.make(2);
    uint64_t counter = 0;
    target->executor().target_args = &counter;
    uint64_t sent = 0;
    Status flushed;
    {
      const Background running(*target);
      auto* link = test::connect(*source, "n1");
      const auto tsi = test::message(*source, "tsi", "x");
      for (int round = 0; round < 20 && flushed; ++round) {
        uint64_t accepted = 0;
        for (int i = 0; i < 50; ++i) {
          if (!source->send(*link, *tsi, false, Deadline::after_ms(100))) break;
          ++accepted;
          if (i % 5 == 0) source->poll();
        }
        flushed = link->flush(Deadline::after_ms(500));
        if (flushed) sent += accepted;
        if (round == 5) net.network.set_faults({.drop_every = every});
      }
    }
    EXPECT_FALSE(flushed) << "what was lost is noticed";
    EXPECT_GE(counter, sent);
    EXPECT_LE(counter, sent + 50);
  }
}

}  // namespace
}  // namespace tc::node::test
