// SPDX-License-Identifier: Apache-2.0
//
// What every transport has to do, tried on each: nodes of one process, driven by one thread or by one each.
#include <gtest/gtest.h>

#include <thread>

#include "transport/testing/test_node.h"

namespace tc::transport {
namespace {

class EachTransport : public testing::TestWithParam<Kind> {
 protected:
  // UCX 1.13 ends the process of a peer whose other side goes while the two still connect. Here that is ourselves.
  void TearDown() override {
    if (!GetParam().is_ucx()) return;
    for (const auto deadline = Deadline::after_ms(50); !deadline.passed();) {
      a->turn();
      b->turn();
    }
  }
  std::unique_ptr<TestNode> make() { return std::make_unique<TestNode>(GetParam(), &network); }
  static bool turn_until(TestNode& a, TestNode& b, const std::function<bool()>& done, uint64_t ms = 20'000) {
    return a.until(
        [&] {
          b.turn();
          return done();
        },
        ms);
  }
  void join() {
    a->connect(b->listen());
    ASSERT_TRUE(turn_until(*a, *b, [&] { return a->is_open() && b->is_open(); }));
  }
  // Takes frame `number` at b.
  Took arrives(uint32_t number) {
    Took took = Took::nothing;
    (void)turn_until(*a, *b, [&] { return (took = take_frame(b->in(), number)) != Took::nothing; });
    return took;
  }

  SimulatedNetwork network;
  std::unique_ptr<TestNode> a = make(), b = make();
};

TEST_P(EachTransport, both_sides_hear_the_others_hello_and_who_it_is) {
  a->connect(b->listen(), "it is me");
  ASSERT_TRUE(turn_until(*a, *b, [&] { return a->is_open() && b->is_open(); }));
  EXPECT_EQ(b->heard, "it is me");
  EXPECT_EQ(a->heard, "hello back");
  EXPECT_TRUE(b->peer->origin().same_user);
  EXPECT_FALSE(b->peer->origin().text.empty());
  EXPECT_TRUE(a->warnings.empty());
}

TEST_P(EachTransport, frames_pass_both_ways_between_two_threads) {
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

TEST_P(EachTransport, frames_lie_at_8_modulo_16_and_come_in_order) {
  join();
  for (uint32_t i = 0; i < 100; ++i) {
    const std::byte* const at = a->out().reserve(i);
    ASSERT_NE(at, nullptr);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(at) % 16, 8u);
    ASSERT_TRUE(put_frame(a->out(), i, i));
  }
  for (uint32_t i = 0; i < 100; ++i) {
    ASSERT_TRUE(turn_until(*a, *b, [&] { return b->in().peek() != 0; }));
    EXPECT_EQ(reinterpret_cast<uintptr_t>(b->in().at()) % 16, 8u);
    ASSERT_EQ(arrives(i), Took::frame) << i;
  }
}

TEST_P(EachTransport, a_burst_comes_as_its_frames) {
  join();
  const std::vector<std::byte> body(64);
  ASSERT_NE(a->out().reserve(1000), nullptr);
  OutStream::Burst burst(a->out());
  for (const uint32_t length : {1u, 8u, 9u, 24u, 60u}) ASSERT_TRUE(burst.add(call_header(length, length), body.data()));
  burst.publish();
  for (const uint32_t length : {1u, 8u, 9u, 24u, 60u}) {
    ASSERT_TRUE(turn_until(*a, *b, [&] { return b->in().peek() != 0 && b->in().fits(length); }));
    EXPECT_EQ(b->in().peek(), call_header(length, length));
    b->in().advance(length);
  }
}

TEST_P(EachTransport, the_longest_frame_passes_many_times) {
  join();
  const size_t longest = a->out().max_length();
  EXPECT_GE(longest, 16u * 1024);
  for (uint32_t i = 0; i < 50; ++i) {
    ASSERT_TRUE(turn_until(*a, *b, [&] { return put_frame(a->out(), i, longest); })) << i;
    ASSERT_EQ(arrives(i), Took::frame) << i;
    b->in().release();
  }
}

TEST_P(EachTransport, nothing_can_be_reserved_before_the_greetings_nor_behind_the_end) {
  a->connect(b->listen());
  EXPECT_EQ(a->out().reserve(0), nullptr);
  ASSERT_TRUE(turn_until(*a, *b, [&] { return a->is_open() && b->is_open(); }));
  EXPECT_NE(a->out().reserve(0), nullptr);
  b->peer.reset();
  ASSERT_TRUE(turn_until(*a, *b, [&] { return a->lost.has_value(); }));
  EXPECT_EQ(a->out().reserve(0), nullptr);
  a->out().flush();
}

TEST_P(EachTransport, a_peer_that_reads_nothing_makes_its_sender_wait_and_loses_nothing) {
  join();
  uint32_t sent = 0;
  const auto deadline = Deadline::after_ms(20'000);
  for (unsigned idle = 0; idle < 300 && !deadline.passed();) {
    if (put_frame(a->out(), sent, 1000)) {
      ++sent;
      idle = 0;
    } else {
      ++idle;
      a->turn();
      b->turn();
    }
  }
  EXPECT_GT(sent, 100u);
  EXPECT_FALSE(deadline.passed());
  uint32_t received = 0;
  ASSERT_TRUE(turn_until(*a, *b,
                         [&] {
                           for (; take_frame(b->in(), received) == Took::frame;) ++received;
                           b->in().release();
                           return received == sent;
                         }))
      << received << " of " << sent;
  ASSERT_TRUE(turn_until(*a, *b, [&] { return put_frame(a->out(), sent, 1000); }));
  EXPECT_EQ(arrives(sent), Took::frame);
}

TEST_P(EachTransport, closing_hands_over_what_was_committed_first) {
  join();
  uint32_t sent = 0;
  while (sent < 2000 && put_frame(a->out(), sent, 500)) ++sent;
  ASSERT_GT(sent, 50u);
  a->peer->close();
  a->peer->close();
  a->peer.reset();
  uint32_t received = 0;
  ASSERT_TRUE(turn_until(*a, *b,
                         [&] {
                           for (; take_frame(b->in(), received) == Took::frame;) ++received;
                           b->in().release();
                           return received == sent && b->lost.has_value();
                         }))
      << received << " of " << sent;
  EXPECT_EQ(b->lost->code, TC_ERR_DISCONNECTED);
  EXPECT_EQ(a->losses, 0u);  // who closes is not told
  EXPECT_EQ(b->losses, 1u);
}

TEST_P(EachTransport, a_connection_that_is_destroyed_is_a_loss_for_the_peer_and_comes_once) {
  join();
  a->peer.reset();
  ASSERT_TRUE(turn_until(*a, *b, [&] { return b->lost.has_value(); }));
  for (int i = 0; i < 100; ++i) {
    a->turn();
    b->turn();
  }
  EXPECT_EQ(b->losses, 1u);
  EXPECT_EQ(b->lost->code, TC_ERR_DISCONNECTED);
}

TEST_P(EachTransport, a_peer_is_refused_in_words) {
  b->opens = false;
  a->connect(b->listen());
  ASSERT_TRUE(turn_until(*a, *b, [&] { return b->accepted == 1; }));
  b->peer->refuse({TC_ERR_VERSION, "your protocol is 7 when ours is 8"});
  ASSERT_TRUE(turn_until(*a, *b, [&] { return a->lost.has_value(); }));
  EXPECT_NE(a->lost->message.find("your protocol is 7 when ours is 8"), std::string::npos) << a->lost->message;
  EXPECT_EQ(a->lost->code, TC_ERR_VERSION);
}

TEST_P(EachTransport, whom_the_node_does_not_let_in_is_never_heard) {
  b->admits = [](const Origin&) { return false; };
  a->connect(b->listen());
  ASSERT_TRUE(turn_until(*a, *b, [&] { return a->lost.has_value(); }));
  EXPECT_NE(a->lost->message.find("nobody is let in"), std::string::npos) << a->lost->message;
  EXPECT_EQ(a->lost->code, TC_ERR_DENIED);
  EXPECT_EQ(b->accepted, 0u);
}

TEST_P(EachTransport, two_connections_between_the_same_nodes_are_independent) {
  const std::string address = b->listen();
  a->connect(address);
  ASSERT_TRUE(turn_until(*a, *b, [&] { return a->opened == 1 && b->opened == 1; }));
  const auto first = std::move(a->peer);
  a->connect(address);
  ASSERT_TRUE(turn_until(*a, *b, [&] { return a->opened == 2 && b->opened == 2; }));
  auto& b_first = *b->earlier.at(0);
  ASSERT_TRUE(put_frame(first->out(), 1, 8) && put_frame(a->out(), 2, 8));
  ASSERT_TRUE(turn_until(*a, *b, [&] { return b->in().peek() != 0 && b_first.in().peek() != 0; }));
  EXPECT_EQ(take_frame(b_first.in(), 1), Took::frame);
  EXPECT_EQ(take_frame(b->in(), 2), Took::frame);
  first->close();
  ASSERT_TRUE(turn_until(*a, *b, [&] { return b->losses == 1; }));
  ASSERT_TRUE(put_frame(a->out(), 3, 8));
  EXPECT_EQ(arrives(3), Took::frame);
  EXPECT_EQ(a->losses, 0u);
}

TEST_P(EachTransport, connecting_again_after_closing_works_many_times) {
  const std::string address = b->listen();
  for (uint32_t round = 0; round < 20; ++round) {
    a->start_anew();
    b->start_anew();
    a->connect(address);
    ASSERT_TRUE(turn_until(*a, *b, [&] { return (a->is_open() && b->is_open()) || a->lost || b->lost; })) << round;
    ASSERT_FALSE(a->lost) << round << ": " << a->lost->message;
    ASSERT_FALSE(b->lost) << round << ": " << b->lost->message;
    ASSERT_TRUE(put_frame(a->out(), round, 100));
    ASSERT_EQ(arrives(round), Took::frame) << round;
    a->peer->close();
    a->peer.reset();
    ASSERT_TRUE(turn_until(*a, *b, [&] { return b->lost.has_value(); })) << round;
  }
  EXPECT_EQ(a->losses, 0u);
}

TEST_P(EachTransport, both_ends_started_anew_meet_again_at_the_same_address) {
  const std::string address = b->listen();
  for (uint32_t round = 0; round < 5; ++round) {
    a->connect(address);
    ASSERT_TRUE(turn_until(*a, *b, [&] { return a->is_open() && b->is_open(); })) << round;
    ASSERT_TRUE(put_frame(a->out(), round, 100) && put_frame(b->out(), round, 50));
    ASSERT_EQ(arrives(round), Took::frame) << round;
    ASSERT_TRUE(turn_until(*a, *b, [&] { return take_frame(a->in(), round) == Took::frame; })) << round;
    const bool a_dies_first = round % 2 == 0;
    if (a_dies_first) a->peer.reset(), a.reset();
    b->earlier.clear(), b->peer.reset(), b.reset();
    if (!a_dies_first) {
      ASSERT_TRUE(a->until([&] { return a->lost.has_value(); })) << round;
      a->peer.reset(), a.reset();
    }
    a = make(), b = make();
    ASSERT_EQ(b->listen(address), address);
  }
}

TEST_P(EachTransport, a_node_connects_to_itself) {
  const std::string address = a->listen();
  auto self = a->transport->connect(address, as_bytes(std::string_view("me"))).value();
  ASSERT_TRUE(a->until([&] { return a->opened == 2; }));
  EXPECT_EQ(a->accepted, 1u);
  ASSERT_TRUE(put_frame(self->out(), 1, 100));
  EXPECT_TRUE(a->until([&] { return take_frame(a->in(), 1) == Took::frame; }));
}

TEST_P(EachTransport, connecting_where_nobody_listens_is_an_error_that_names_the_address) {
  const auto made = a->transport->connect("127.0.0.1:1", {});
  const auto reason = [&] {
    if (!made) return made.error();
    EXPECT_TRUE(a->until([&] { return a->lost.has_value(); }));
    return a->lost.value_or(Error{});
  }();
  const std::string where = made ? (*made)->peer_address() + reason.message : reason.message;
  EXPECT_NE(where.find("127.0.0.1:1"), std::string::npos) << where;
}

TEST_P(EachTransport, frames_that_were_sent_before_the_peer_was_heard_are_there_when_it_opens) {
  b->opens = false;
  a->connect(b->listen());
  ASSERT_TRUE(turn_until(*a, *b, [&] { return b->accepted == 1; }));
  ASSERT_TRUE(b->peer->open(as_bytes(std::string_view("late"))));
  ASSERT_TRUE(put_frame(b->out(), 0, 8));  // a has not read the greeting yet
  b->out().flush();
  for (int i = 0; i < 50; ++i) b->turn();
  ASSERT_TRUE(turn_until(*a, *b, [&] { return a->is_open(); }));
  ASSERT_TRUE(turn_until(*a, *b, [&] { return take_frame(a->in(), 0) == Took::frame; }));
  EXPECT_EQ(a->heard, "late");
}

TEST_P(EachTransport, a_sleeper_is_woken_by_a_frame_by_a_loss_and_by_wake) {
  join();
  std::thread sleeper([&] {
    while (take_frame(b->in(), 0) != Took::frame) {
      b->sleep(20'000);
      b->turn();
    }
    while (!b->lost) b->sleep(20'000);
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  const uint64_t before = now_ns();
  ASSERT_TRUE(put_frame(a->out(), 0, 1));
  a->turn();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  a->peer.reset();
  a->turn();
  sleeper.join();
  b->transport->wake();
  b->sleep(20'000);
  EXPECT_LT(now_ns() - before, 10'000'000'000u);
}

TEST_P(EachTransport, frames_that_came_are_not_slept_over) {
  join();
  ASSERT_TRUE(put_frame(a->out(), 0, 1));
  ASSERT_EQ(arrives(0), Took::frame);
  ASSERT_TRUE(put_frame(a->out(), 1, 1));
  for (int i = 0; i < 20; ++i) a->turn();
  const uint64_t before = now_ns();
  while (take_frame(b->in(), 1) != Took::frame) b->sleep(20'000);
  EXPECT_LT(now_ns() - before, 10'000'000'000u);
}

TEST_P(EachTransport, what_a_node_sends_while_it_gathers_leaves_when_it_is_done) {
  join();
  a->transport->pulse.gathering = true;
  for (uint32_t i = 0; i < 3; ++i) ASSERT_TRUE(put_frame(a->out(), i, 8));
  a->transport->pulse.gathering = false;
  a->transport->flush();
  for (uint32_t i = 0; i < 3; ++i) EXPECT_EQ(arrives(i), Took::frame) << i;
}

TEST_P(EachTransport, the_owner_may_destroy_what_it_is_given_at_once) {
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

std::string name(const testing::TestParamInfo<Kind>& info) { return info.param.name; }
INSTANTIATE_TEST_SUITE_P(Conformance, EachTransport, testing::ValuesIn(kinds), name);

}  // namespace
}  // namespace tc::transport
