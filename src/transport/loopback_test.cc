// SPDX-License-Identifier: Apache-2.0
#include "transport/loopback.h"

#include <thread>

#include "transport/transport_test_kit.h"

namespace tc::transport {
namespace {

// Two connected nodes with open streams both ways.
class Loopback : public testing::Test {
 protected:
  void SetUp() override {
    a_node = network.join(a_events);
    b_node = network.join(b_events);
    ASSERT_EQ(b_node->listen("b").value(), "b");
    a = a_node->connect("b").value();
    b_node->progress();
    ASSERT_EQ(b_events.accepted.size(), 1u);
    b = std::move(b_events.accepted[0]);
    ASSERT_TRUE(a->open_way(Way::automatic, b->offer(Way::automatic).value()));
    ASSERT_TRUE(b->open_way(Way::automatic, a->offer(Way::automatic).value()));
  }
  void turn() {
    a_node->progress();
    b_node->progress();
  }

  LoopbackNetwork network;
  Recorder a_events, b_events;
  std::unique_ptr<Transport> a_node, b_node;
  std::unique_ptr<Connection> a, b;
};

TEST_F(Loopback, frames_arrive_in_order_and_whole) {
  Random random(1);
  uint32_t sent = 0, received = 0;
  while (received < 20000) {
    for (int i = 0; i < 100 && sent < 20000; ++i)
      if (put_frame(a->out(), sent, random.below(300))) ++sent;
    turn();
    for (Took took; (took = take_frame(b->in(), received)) != Took::nothing; ++received)
      ASSERT_EQ(took, Took::frame) << received;
    b->in().release();
    ASSERT_TRUE(a->out().credit(b->in().consumed()));
  }
  EXPECT_EQ(network.in_flight(), 0u);
}

TEST_F(Loopback, the_first_frame_leaves_at_once_and_those_behind_it_are_coalesced) {
  ASSERT_TRUE(put_frame(a->out(), 0, 1));
  EXPECT_EQ(network.in_flight(), 9u);  // header and payload, no padding
  ASSERT_TRUE(put_frame(a->out(), 1, 1));
  ASSERT_TRUE(put_frame(a->out(), 2, 1));
  EXPECT_EQ(network.in_flight(), 9u);
  a->out().flush();
  EXPECT_EQ(network.in_flight(), 9u + 32u);
  a_node->progress();
  ASSERT_TRUE(put_frame(a->out(), 3, 8));
  EXPECT_EQ(network.in_flight(), 9u + 32u + 16u);
  b_node->progress();
  for (uint32_t i = 0; i < 4; ++i) EXPECT_EQ(take_frame(b->in(), i), Took::frame);
}

TEST_F(Loopback, every_frame_starts_at_8_modulo_16) {
  for (uint32_t i = 0; i < 50; ++i) {
    const std::byte* const at = a->out().reserve(i);
    ASSERT_NE(at, nullptr);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(at) % 16, 8u);
    ASSERT_TRUE(put_frame(a->out(), i, i));
  }
  turn();
  for (uint32_t i = 0; i < 50; ++i) {
    while (b->in().peek() == 0) ASSERT_TRUE(b->in().refill());
    EXPECT_EQ(reinterpret_cast<uintptr_t>(b->in().at()) % 16, 8u);
    ASSERT_EQ(take_frame(b->in(), i), Took::frame);
  }
}

TEST_F(Loopback, a_full_window_refuses_until_credit_comes) {
  uint32_t sent = 0;
  while (put_frame(a->out(), sent, 1000)) ++sent;
  EXPECT_GT(sent, 1000u);
  EXPECT_LE(sent * wire::stride(1000), 1024u * 1024u);
  turn();
  EXPECT_EQ(a->out().reserve(1000), nullptr);
  for (uint32_t i = 0; i < sent; ++i) ASSERT_EQ(take_frame(b->in(), i), Took::frame);
  EXPECT_EQ(b->in().consumed(), sent * wire::stride(1000));
  ASSERT_TRUE(a->out().credit(b->in().consumed()));
  EXPECT_TRUE(put_frame(a->out(), sent, 1000));
}

TEST_F(Loopback, a_credit_that_lies_is_refused) {
  ASSERT_TRUE(put_frame(a->out(), 0, 8));
  EXPECT_FALSE(a->out().credit(17));
  EXPECT_TRUE(a->out().credit(16));
  EXPECT_FALSE(a->out().credit(15));
}

TEST_F(Loopback, a_frame_over_the_limit_is_never_granted) {
  EXPECT_NE(a->out().reserve(a->out().max_length()), nullptr);
  EXPECT_EQ(a->out().reserve(a->out().max_length() + 16), nullptr);
}

TEST_F(Loopback, control_frames_arrive_in_order) {
  for (uint32_t i = 0; i < 5; ++i) ASSERT_TRUE(a->send_control(control_frame(i)));
  turn();
  ASSERT_EQ(b_events.controls.size(), 5u);
  for (uint32_t i = 0; i < 5; ++i) EXPECT_EQ(b_events.controls[i], control_frame(i));
  EXPECT_EQ(b_events.control_from[0], b.get());
}

TEST_F(Loopback, a_control_frame_without_a_header_or_over_the_limit_is_refused) {
  EXPECT_EQ(a->send_control(Bytes(7)).error().code, TC_ERR_TOO_LARGE);
  EXPECT_EQ(a->send_control(Bytes(65 * 1024)).error().code, TC_ERR_TOO_LARGE);
}

TEST_F(Loopback, a_message_that_was_dropped_is_missed_when_the_next_one_comes) {
  network.set_faults({.drop_every = 3});
  for (uint32_t i = 1; i <= 3; ++i) ASSERT_TRUE(a->send_control(control_frame(i)));
  turn();
  EXPECT_EQ(b_events.controls.size(), 2u);
  EXPECT_TRUE(b_events.lost.empty());
  ASSERT_TRUE(put_frame(a->out(), 0, 1));
  turn();
  ASSERT_EQ(b_events.lost.size(), 1u);
  EXPECT_EQ(b_events.lost[0].reason.message, "message 4 came when 3 was due");
  EXPECT_EQ(take_frame(b->in(), 0), Took::nothing);
}

TEST_F(Loopback, a_message_that_comes_twice_is_taken_once) {
  network.set_faults({.duplicate_every = 2});
  for (uint32_t i = 0; i < 4; ++i) {
    ASSERT_TRUE(put_frame(a->out(), i, 1));
    a->out().flush();
  }
  turn();
  ASSERT_EQ(b_events.lost.size(), 1u);
  EXPECT_EQ(b_events.lost[0].reason.message, "message 2 came when 3 was due");
  EXPECT_EQ(take_frame(b->in(), 0), Took::frame);
  EXPECT_EQ(take_frame(b->in(), 1), Took::frame);
  EXPECT_EQ(take_frame(b->in(), 2), Took::nothing);
}

TEST_F(Loopback, a_truncated_batch_loses_the_connection_with_both_values) {
  network.set_faults({.truncate_every = 1});
  ASSERT_TRUE(put_frame(a->out(), 0, 100));
  turn();
  ASSERT_EQ(b_events.lost.size(), 1u);
  EXPECT_EQ(b_events.lost[0].reason.code, TC_ERR_MALFORMED);
  EXPECT_EQ(b_events.lost[0].reason.message, "the frame at 0 is 100 bytes when only 46 are left in its batch");
  EXPECT_EQ(take_frame(b->in(), 0), Took::nothing);
  turn();
  EXPECT_EQ(a_events.lost.size(), 1u);
}

TEST_F(Loopback, truncating_the_smallest_frames_is_noticed_as_well) {
  network.set_faults({.truncate_every = 1});
  ASSERT_TRUE(put_frame(a->out(), 0, 8));
  turn();
  EXPECT_EQ(b_events.lost.size(), 1u);
}

TEST_F(Loopback, a_flipped_bit_changes_what_arrives) {
  network.set_faults({.flip_every = 1});
  ASSERT_TRUE(a->send_control(control_frame(1)));
  turn();
  ASSERT_EQ(b_events.controls.size(), 1u);
  EXPECT_NE(b_events.controls[0], control_frame(1));
}

TEST_F(Loopback, delayed_messages_arrive_after_so_many_progress_calls) {
  network.set_faults({.delay_progress = 3});
  ASSERT_TRUE(a->send_control(control_frame(1)));
  b_node->progress();
  b_node->progress();
  EXPECT_TRUE(b_events.controls.empty());
  b_node->progress();
  EXPECT_EQ(b_events.controls.size(), 1u);
}

TEST_F(Loopback, a_cut_network_is_a_loss_on_both_sides_and_comes_once) {
  network.set_faults({.disconnect = true});
  for (int i = 0; i < 3; ++i) turn();
  EXPECT_EQ(a_events.lost.size(), 1u);
  EXPECT_EQ(b_events.lost.size(), 1u);
  EXPECT_EQ(a->send_control(control_frame(1)).error().code, TC_ERR_DISCONNECTED);
  EXPECT_EQ(a->out().reserve(1), nullptr);
}

TEST_F(Loopback, closing_hands_over_what_was_committed_first) {
  ASSERT_TRUE(put_frame(a->out(), 0, 1));
  ASSERT_TRUE(put_frame(a->out(), 1, 1));
  ASSERT_TRUE(a->send_control(control_frame(9)));
  a->close();
  a->close();
  turn();
  EXPECT_EQ(take_frame(b->in(), 0), Took::frame);
  EXPECT_EQ(take_frame(b->in(), 1), Took::frame);
  EXPECT_EQ(b_events.controls.size(), 1u);
  ASSERT_EQ(b_events.lost.size(), 1u);
  EXPECT_EQ(b_events.lost[0].reason.code, TC_ERR_DISCONNECTED);
  EXPECT_TRUE(a_events.lost.empty());  // who closes is not told
}

TEST_F(Loopback, destroying_a_connection_is_a_loss_for_the_peer) {
  a.reset();
  turn();
  EXPECT_EQ(b_events.lost.size(), 1u);
  EXPECT_EQ(b->send_control(control_frame(1)).error().code, TC_ERR_DISCONNECTED);
}

TEST_F(Loopback, connecting_to_nobody_is_lost_with_the_name) {
  const auto c = a_node->connect("nobody").value();
  a_node->progress();
  ASSERT_EQ(a_events.lost.size(), 1u);
  EXPECT_EQ(a_events.lost[0].connection, c.get());
  EXPECT_EQ(a_events.lost[0].reason.message, "nobody listens at 'nobody'");
}

TEST_F(Loopback, a_name_is_taken_once) { EXPECT_EQ(a_node->listen("b").error().code, TC_ERR_INVALID); }

TEST_F(Loopback, a_way_that_does_not_exist_here_is_refused) {
  EXPECT_EQ(a->open_way(Way::ring, b->offer(Way::ring).value()).error().code, TC_ERR_UNSUPPORTED);
  EXPECT_EQ(a->open_way(Way::automatic, Bytes(3)).error().code, TC_ERR_MALFORMED);
}

TEST_F(Loopback, nothing_can_be_reserved_before_the_way_is_open) {
  const auto c = a_node->connect("b").value();
  EXPECT_EQ(c->out().reserve(0), nullptr);
}

TEST_F(Loopback, a_sleeper_is_woken_by_a_frame_and_by_wake) {
  std::thread sleeper([&] {
    while (take_frame(b->in(), 0) != Took::frame) {
      b_node->sleep(Deadline::after_ms(20000));
      b_node->progress();
    }
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  const uint64_t before = now_ns();
  ASSERT_TRUE(put_frame(a->out(), 0, 1));
  sleeper.join();
  b_node->wake();
  b_node->sleep(Deadline::after_ms(20000));
  EXPECT_LT(now_ns() - before, 10'000'000'000u);
}

TEST_F(Loopback, unread_frames_are_not_slept_over) {
  ASSERT_TRUE(put_frame(a->out(), 0, 1));
  b_node->progress();
  const uint64_t before = now_ns();
  b_node->sleep(Deadline::after_ms(20000));
  b_node->sleep(Deadline::after_ms(20000));
  EXPECT_LT(now_ns() - before, 10'000'000'000u);
}

}  // namespace
}  // namespace tc::transport
