// SPDX-License-Identifier: Apache-2.0
//
// How frames pass: whole, in order, with back pressure. Tried on every transport.
#include <thread>

#include "base/testing/run_until.h"
#include "transport/testing/each_transport.h"

namespace tc::transport {
namespace {

class PassingFrames : public EachTransport {
 protected:
  // Takes as many frames at b. How many came.
  uint32_t receive_all(uint32_t sent) {
    uint32_t received = 0;
    (void)poll_until(*a, *b, [&] {
      for (; take_frame(b->in(), received) == Took::frame;) ++received;
      b->in().release();
      return received == sent;
    });
    return received;
  }
};

TEST_P(PassingFrames, frames_pass_both_ways_between_two_threads) {
  const std::string address = b->listen();
  static constexpr uint32_t frames = 20000;
  std::atomic<int> finished = 0;
  const auto run = [&](TestNode& node) {
    uint32_t sent = 0, received = 0;
    const bool done = node.until(
        [&] {
          if (!node.is_open()) return node.lost.has_value();
          for (int i = 0; i < 50 && sent < frames && put_frame(node.out(), sent, sent % 200); ++i) ++sent;
          for (Took took; (took = take_frame(node.in(), received)) != Took::nothing; ++received)
            if (took == Took::wrong) return true;
          node.in().release();
          return sent == frames && received == frames;
        },
        60'000);
    ++finished;
    EXPECT_TRUE(node.until([&] { return finished == 2; }));  // what was committed may still wait for room
    EXPECT_TRUE(done);
    EXPECT_EQ(sent, frames);
    EXPECT_EQ(received, frames);
  };
  std::thread other([&] { run(*b); });
  a->connect(address);
  run(*a);
  other.join();
}

TEST_P(PassingFrames, frames_lie_at_8_modulo_16_and_come_in_order) {
  join();
  for (uint32_t i = 0; i < 100; ++i) {
    const std::byte* const at = a->out().reserve(i);
    ASSERT_NE(at, nullptr);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(at) % 16, 8u);
    ASSERT_TRUE(put_frame(a->out(), i, i));
  }
  for (uint32_t i = 0; i < 100; ++i) {
    ASSERT_TRUE(poll_until(*a, *b, [&] { return b->in().peek() != 0; }));
    EXPECT_EQ(reinterpret_cast<uintptr_t>(b->in().at()) % 16, 8u);
    ASSERT_EQ(arrives(i), Took::frame) << i;
  }
}

TEST_P(PassingFrames, a_burst_comes_as_its_frames) {
  join();
  const std::vector<std::byte> body(64);
  ASSERT_NE(a->out().reserve(1000), nullptr);
  OutStream::Burst burst(a->out());
  for (const uint32_t length : {1u, 8u, 9u, 24u, 60u}) ASSERT_TRUE(burst.add(call_header(length, length), body.data()));
  burst.publish();
  for (const uint32_t length : {1u, 8u, 9u, 24u, 60u}) {
    ASSERT_TRUE(poll_until(*a, *b, [&] { return b->in().peek() != 0 && b->in().fits(length); }));
    EXPECT_EQ(b->in().peek(), call_header(length, length));
    b->in().advance(length);
  }
}

TEST_P(PassingFrames, the_longest_frame_passes_many_times) {
  join();
  const size_t longest = a->out().max_length();
  EXPECT_GE(longest, 16u * 1024);
  for (uint32_t i = 0; i < 50; ++i) {
    ASSERT_TRUE(poll_until(*a, *b, [&] { return put_frame(a->out(), i, longest); })) << i;
    ASSERT_EQ(arrives(i), Took::frame) << i;
    b->in().release();
  }
}

TEST_P(PassingFrames, a_peer_that_reads_nothing_makes_its_sender_wait_and_loses_nothing) {
  join();
  uint32_t sent = 0;
  const auto deadline = Deadline::after_ms(20'000);
  for (unsigned idle = 0; idle < 300 && !deadline.passed();) {
    if (put_frame(a->out(), sent, 1000)) {
      ++sent;
      idle = 0;
    } else {
      ++idle;
      a->poll();
      b->poll();
    }
  }
  EXPECT_GT(sent, 100u);
  EXPECT_FALSE(deadline.passed());
  EXPECT_EQ(receive_all(sent), sent);
  ASSERT_TRUE(poll_until(*a, *b, [&] { return put_frame(a->out(), sent, 1000); }));
  EXPECT_EQ(arrives(sent), Took::frame);
}

TEST_P(PassingFrames, a_peer_that_is_paused_waits_while_its_reader_sleeps_and_goes_on_later) {
  join();
  if (b->peer->is_polled()) GTEST_SKIP() << "its owner decides whether it reads";
  b->peer->set_paused(true);
  uint32_t sent = 0;
  for (unsigned idle = 0; idle < 300;) {
    idle = put_frame(a->out(), sent, 1000) ? 0 : idle + 1;
    sent += idle == 0 ? 1 : 0;
    a->poll();
    b->poll();
    ASSERT_LT(sent, 100'000u) << "nothing slows the sender";
  }
  // Both sides poll on, as nodes do, and what was still on its way may wake the sleeper. A tenth of a second must come in
  // which it sleeps: a reader that polls instead makes thousands of rounds in each of them.
  unsigned rounds = 0;
  EXPECT_TRUE(tc::test::run_until([&] { return rounds != 0 && rounds < 50; },
                                  [&] {
                                    rounds = 0;
                                    for (const auto end = Deadline::after_ms(100); !end.passed(); ++rounds) {
                                      a->poll();
                                      b->sleep(50);
                                      b->poll();
                                    }
                                  }))
      << rounds << " rounds in a tenth of a second";
  b->peer->set_paused(false);
  EXPECT_EQ(receive_all(sent), sent);
}

TEST_P(PassingFrames, what_a_node_commits_while_it_gathers_is_sent_by_a_flush) {
  join();
  a->transport->poll_state.gathering = true;
  for (uint32_t i = 0; i < 3; ++i) ASSERT_TRUE(put_frame(a->out(), i, 8));
  a->transport->poll_state.gathering = false;
  a->transport->flush();
  for (uint32_t i = 0; i < 3; ++i) EXPECT_EQ(arrives(i), Took::frame) << i;
}

INSTANTIATE_TEST_SUITE_P(Conformance, PassingFrames, testing::ValuesIn(kinds), name_of_kind);

}  // namespace
}  // namespace tc::transport
