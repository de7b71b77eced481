// SPDX-License-Identifier: Apache-2.0
//
// How connections end, and how a node sleeps and wakes. Tried on every transport.
#include <atomic>
#include <thread>

#include "transport/testing/each_transport.h"

namespace tc::transport {
namespace {

class EndingAndSleeping : public EachTransport {};

TEST_P(EndingAndSleeping, nothing_can_be_reserved_before_the_greetings_nor_behind_the_end) {
  a->connect(b->listen());
  EXPECT_EQ(a->out().reserve(0), nullptr);
  ASSERT_TRUE(poll_until(*a, *b, [&] { return a->is_open() && b->is_open(); }));
  EXPECT_NE(a->out().reserve(0), nullptr);
  b->peer.reset();
  ASSERT_TRUE(poll_until(*a, *b, [&] { return a->lost.has_value(); }));
  EXPECT_EQ(a->out().reserve(0), nullptr);
  a->out().flush();
}

TEST_P(EndingAndSleeping, closing_hands_over_what_was_committed_first) {
  join();
  uint32_t sent = 0;
  while (sent < 2000 && put_frame(a->out(), sent, 500)) ++sent;
  ASSERT_GT(sent, 50u);
  a->peer->close();
  a->peer->close();
  a->peer.reset();
  uint32_t received = 0;
  ASSERT_TRUE(poll_until(*a, *b,
                         [&] {
                           for (; take_frame(b->in(), received) == Took::frame;) ++received;
                           b->in().release();
                           return received == sent && b->lost.has_value();
                         }))
      << received << " of " << sent;
  EXPECT_EQ(b->lost->code, TC_ERR_DISCONNECTED);
  EXPECT_EQ(a->losses, 0u);  // the closing side gets no event
  EXPECT_EQ(b->losses, 1u);
}

// UCX loses longer messages then, without a word: worker.h.
TEST_P(EndingAndSleeping, many_frames_reach_a_peer_that_has_come_back_while_its_first_connection_is_still_held) {
  const auto address = b->listen();
  for (int round = 0; round < 2; ++round) {
    b->lost.reset();
    b->opened = 0;
    a->connect(address);
    ASSERT_TRUE(poll_until(*a, *b, [&] { return a->is_open() && b->is_open(); }));
    constexpr uint32_t sent = 30;
    for (uint32_t i = 0; i < sent; ++i) ASSERT_TRUE(put_frame(b->out(), i, 3000));
    uint32_t received = 0;
    ASSERT_TRUE(poll_until(*a, *b,
                           [&] {
                             for (; take_frame(a->in(), received) == Took::frame;) ++received;
                             a->in().release();
                             return received == sent || a->lost;
                           }))
        << received << " of " << sent << ", round " << round;
    ASSERT_EQ(received, sent) << a->lost->message << ", round " << round;
    a->drop_peer();
    ASSERT_TRUE(poll_until(*a, *b, [&] { return b->lost.has_value(); }));
    for (int i = 0; i < 1000; ++i) a->poll();
  }
}

// The peer is gone with our answers unread, so the next ones cannot be sent.
TEST_P(EndingAndSleeping, what_a_peer_sent_before_it_left_is_read_after_a_send_to_it_has_failed) {
  join();
  if (GetParam().is_ucx()) GTEST_SKIP() << "UCX drops what it holds when an endpoint is closed by force";
  constexpr uint32_t sent = 60;
  for (uint32_t i = 0; i < sent; ++i) ASSERT_TRUE(put_frame(a->out(), i, 500));
  a->poll();
  ASSERT_TRUE(put_frame(b->out(), 0, 8));
  b->transport->flush();
  a->peer.reset();
  for (uint32_t i = 1; i < 100; ++i) {
    ASSERT_TRUE(put_frame(b->out(), i, 8)) << i;
    b->transport->flush();
  }
  uint32_t received = 0;
  ASSERT_TRUE(poll_until(*a, *b, [&] {
    for (; take_frame(b->in(), received) == Took::frame;) ++received;
    b->in().release();
    return b->lost.has_value();
  }));
  for (; take_frame(b->in(), received) == Took::frame;) ++received;
  EXPECT_EQ(received, sent);
  EXPECT_EQ(b->losses, 1u);
}

TEST_P(EndingAndSleeping, what_a_paused_peer_sent_before_it_left_is_read_when_its_owner_goes_on) {
  join();
  if (GetParam().is_ucx()) GTEST_SKIP() << "UCX drops what it holds when an endpoint is closed by force";
  b->peer->set_paused(true);
  constexpr uint32_t sent = 60;
  for (uint32_t i = 0; i < sent; ++i) ASSERT_TRUE(put_frame(a->out(), i, 500));
  a->poll();
  a->peer.reset();
  for (int i = 0; i < 3; ++i) b->poll();
  b->peer->set_paused(false);
  uint32_t received = 0;
  ASSERT_TRUE(poll_until(*a, *b, [&] {
    for (; take_frame(b->in(), received) == Took::frame;) ++received;
    b->in().release();
    return b->lost.has_value();
  }));
  for (; take_frame(b->in(), received) == Took::frame;) ++received;
  EXPECT_EQ(received, sent);
}

TEST_P(EndingAndSleeping, a_peer_that_resets_the_connection_while_it_is_paused_is_lost) {
  join();
  if (GetParam().is_simulated()) GTEST_SKIP() << "its connections have one end only, which waits behind the frames";
  b->peer->set_paused(true);
  ASSERT_TRUE(put_frame(a->out(), 0, 500));
  a->poll();
  ASSERT_TRUE(put_frame(b->out(), 0, 8));
  b->transport->flush();
  a->peer.reset();  // with that frame unread
  EXPECT_TRUE(poll_until(*a, *b, [&] { return b->lost.has_value(); }));
}

TEST_P(EndingAndSleeping, a_connection_that_is_destroyed_is_a_loss_for_the_peer_and_comes_once) {
  join();
  a->peer.reset();
  ASSERT_TRUE(poll_until(*a, *b, [&] { return b->lost.has_value(); }));
  for (int i = 0; i < 100; ++i) {
    a->poll();
    b->poll();
  }
  EXPECT_EQ(b->losses, 1u);
  EXPECT_EQ(b->lost->code, TC_ERR_DISCONNECTED);
}

// A node gives memory back before it sleeps, and a connection may have ended since it polled.
TEST_P(EndingAndSleeping, a_connection_that_was_destroyed_a_moment_ago_has_no_memory_to_give_back) {
  join();
  for (uint32_t i = 0; i < 20; ++i) ASSERT_TRUE(put_frame(a->out(), i, 1000));
  constexpr uint64_t second_ns = 1'000'000'000;
  (void)a->transport->trim(second_ns);
  a->drop_peer();
  EXPECT_EQ(a->transport->trim(2 * second_ns), UINT64_MAX);
  a->poll();
  EXPECT_EQ(a->transport->trim(3 * second_ns), UINT64_MAX);
}

TEST_P(EndingAndSleeping, a_sleeper_is_woken_by_a_frame_by_a_loss_and_by_wake) {
  join();
  std::atomic<bool> arrived = false;
  std::thread sleeper([&] {
    while (take_frame(b->in(), 0) != Took::frame) {
      b->sleep(20'000);
      b->poll();
    }
    arrived = true;
    while (!b->lost) b->sleep(20'000);
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  const uint64_t before = now_ns();
  EXPECT_TRUE(put_frame(a->out(), 0, 1));
  // UCX may need the sender for more than one poll.
  for (const auto deadline = Deadline::after_ms(60'000); !arrived && !deadline.passed();) a->poll();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  a->peer.reset();
  a->poll();
  sleeper.join();
  b->transport->wake();
  b->sleep(20'000);
  EXPECT_LT(now_ns() - before, 10'000'000'000u);
}

TEST_P(EndingAndSleeping, frames_that_came_are_not_slept_over) {
  join();
  ASSERT_TRUE(put_frame(a->out(), 0, 1));
  ASSERT_EQ(arrives(0), Took::frame);
  ASSERT_TRUE(put_frame(a->out(), 1, 1));
  for (int i = 0; i < 20; ++i) a->poll();
  const uint64_t before = now_ns();
  while (take_frame(b->in(), 1) != Took::frame) b->sleep(20'000);
  EXPECT_LT(now_ns() - before, 10'000'000'000u);
}

TEST_P(EndingAndSleeping, the_owner_may_destroy_what_it_is_given_at_once) {
  struct Rude final : Events {
    Status may_connect(const Origin&) override { return {}; }
    void on_accept(std::unique_ptr<Connection>, ByteView) override { ++accepted; }  // destroyed at once
    void on_greeting(Connection& connection, ByteView) override { (void)connection.open({}); }
    void on_frames(Connection&) override {}
    void on_lost(Connection&, const Error&) override {
      mine.reset();
      ++lost;
    }
    std::unique_ptr<Connection> mine;
    int accepted = 0, lost = 0;
  };
  Rude a_events, b_events;
  const auto make_rude = [&](Rude& events) {
    return GetParam().is_simulated() ? network.join(events) : Network::create(options_of(GetParam()), events).value();
  };
  const auto one = make_rude(a_events), two = make_rude(b_events);
  const std::string address = two->listen("127.0.0.1:0").value();
  for (int round = 1; round <= 10; ++round) {
    a_events.mine = one->connect(address, {}).value();
    for (const auto deadline = Deadline::after_ms(10'000); a_events.lost < round && !deadline.passed();) {
      one->progress();
      two->progress();
    }
    ASSERT_EQ(a_events.lost, round);
    ASSERT_EQ(b_events.accepted, round);
  }
}

INSTANTIATE_TEST_SUITE_P(Conformance, EndingAndSleeping, testing::ValuesIn(kinds), name_of_kind);

}  // namespace
}  // namespace tc::transport
