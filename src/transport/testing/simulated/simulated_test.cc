// SPDX-License-Identifier: Apache-2.0
//
// What goes wrong on the simulated network when a test wants it to. What every transport does is tested in testing/.
#include "transport/testing/simulated/simulated.h"

#include <gtest/gtest.h>

#include "transport/testing/test_node.h"

namespace tc::transport {
namespace {

// Two connected nodes with open streams both ways.
class TheSimulatedNetwork : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(b.listen("b"), "b");
    a.connect("b");
    for (int i = 0; i < 3; ++i) poll();
    ASSERT_TRUE(a.is_open() && b.is_open());
  }
  void poll() {
    a.poll();
    b.poll();
  }
  // One message with one frame.
  void send(uint32_t number, size_t length = 8) {
    ASSERT_TRUE(put_frame(a.out(), number, length));
    a.out().flush();
  }

  SimulatedNetwork network;
  TestNode a{kinds[0], &network}, b{kinds[0], &network};
};

TEST_F(TheSimulatedNetwork, what_one_flush_sends_is_one_message) {
  network.set_faults({.delay_progress = 100});
  send(0, 1);
  EXPECT_EQ(network.in_flight(), 16u);
  ASSERT_TRUE(put_frame(a.out(), 1, 8) && put_frame(a.out(), 2, 8));
  EXPECT_EQ(network.in_flight(), 16u) << "frames of one poll end_silently together";
  a.out().flush();
  EXPECT_EQ(network.in_flight(), 3 * 16u);
}

TEST_F(TheSimulatedNetwork, a_dropped_message_is_missed_when_the_next_one_comes) {
  network.set_faults({.drop_every = 3});
  for (uint32_t i = 0; i < 3; ++i) send(i);
  poll();
  EXPECT_FALSE(b.lost);
  send(3);
  poll();
  ASSERT_TRUE(b.lost);
  EXPECT_EQ(b.lost->message, "message 4 came when 3 was due");
  EXPECT_EQ(take_frame(b.in(), 0), Took::frame);
  EXPECT_EQ(take_frame(b.in(), 1), Took::frame);
  EXPECT_EQ(take_frame(b.in(), 2), Took::nothing);
}

TEST_F(TheSimulatedNetwork, a_message_that_comes_twice_is_taken_once) {
  network.set_faults({.duplicate_every = 2});
  for (uint32_t i = 0; i < 4; ++i) send(i);
  poll();
  ASSERT_TRUE(b.lost);
  EXPECT_EQ(b.lost->message, "message 2 came when 3 was due");
  EXPECT_EQ(take_frame(b.in(), 0), Took::frame);
  EXPECT_EQ(take_frame(b.in(), 1), Took::frame);
  EXPECT_EQ(take_frame(b.in(), 2), Took::nothing);
}

TEST_F(TheSimulatedNetwork, a_truncated_message_loses_the_connection_on_both_sides) {
  for (const size_t length : {size_t{8}, size_t{100}, size_t{60'000}}) {
    TestNode c(kinds[0], &network);
    network.set_faults({});
    c.connect("b");
    for (int i = 0; i < 3; ++i) c.poll(), b.poll();
    network.set_faults({.truncate_every = 1});
    ASSERT_TRUE(put_frame(c.out(), 0, length));
    c.out().flush();
    const unsigned losses = b.losses;
    for (int i = 0; i < 3; ++i) c.poll(), b.poll();
    ASSERT_EQ(b.losses, losses + 1) << length;
    EXPECT_EQ(b.lost->message, "the connection was cut in the middle of a message");
    EXPECT_EQ(take_frame(b.in(), 0), Took::nothing) << length;
    EXPECT_TRUE(c.lost);
  }
}

TEST_F(TheSimulatedNetwork, a_flipped_bit_changes_what_arrives_and_nothing_else) {
  network.set_faults({.flip_every = 2});
  for (uint32_t i = 0; i < 2; ++i) send(i, 200);
  poll();
  EXPECT_EQ(take_frame(b.in(), 0), Took::frame);
  EXPECT_EQ(take_frame(b.in(), 1), Took::wrong);
  EXPECT_FALSE(b.lost);
}

TEST_F(TheSimulatedNetwork, a_delayed_message_arrives_after_so_many_progress_calls_of_its_receiver) {
  network.set_faults({.delay_progress = 3});
  send(0);
  b.poll();
  b.poll();
  EXPECT_EQ(take_frame(b.in(), 0), Took::nothing);
  b.poll();
  EXPECT_EQ(take_frame(b.in(), 0), Took::frame);
}

TEST_F(TheSimulatedNetwork, a_cut_is_one_loss_on_each_side_and_no_connection_succeeds_until_it_is_over) {
  network.set_faults({.disconnect = true});
  for (int i = 0; i < 3; ++i) poll();
  EXPECT_EQ(a.losses, 1u);
  EXPECT_EQ(b.losses, 1u);
  EXPECT_EQ(a.lost->message, "the network was cut");
  EXPECT_EQ(a.out().reserve(1), nullptr);
  EXPECT_EQ(network.in_flight(), 0u);
  a.drop_peer();
  a.connect("b");
  poll();
  ASSERT_TRUE(a.lost);
  EXPECT_EQ(a.lost->message, "the network was cut");
  network.set_faults({});
  a.drop_peer();
  b.drop_peer();
  a.connect("b");
  for (int i = 0; i < 3; ++i) poll();
  EXPECT_TRUE(a.is_open() && b.is_open());
}

TEST_F(TheSimulatedNetwork, a_peer_whose_frames_are_not_read_has_to_wait) {
  uint32_t sent = 0;
  for (unsigned idle = 0; idle < 50;) {
    if (put_frame(a.out(), sent, 1000)) {
      ++sent;
      idle = 0;
    } else {
      ++idle;
      poll();
    }
  }
  EXPECT_GT(sent, 1000u);
  EXPECT_LE(network.in_flight(), 1024u * 1024u);
}

TEST_F(TheSimulatedNetwork, a_name_is_taken_once_and_is_free_again_when_its_node_ends) {
  EXPECT_EQ(a.transport->listen("b").error().code, TC_ERR_INVALID);
  EXPECT_EQ(a.transport->listen("").error().code, TC_ERR_INVALID);
  {
    TestNode c(kinds[0], &network);
    EXPECT_EQ(c.listen("c"), "c");
  }
  EXPECT_EQ(a.listen("c"), "c");
  EXPECT_NE(a.listen("node:0"), b.listen("node:0")) << "as ports";
}

TEST_F(TheSimulatedNetwork, a_node_that_has_died_says_nothing_more_until_another_one_listens_there) {
  ASSERT_EQ(a.listen("a"), "a");
  a.drop_peer();
  a.connect("b");
  for (int i = 0; i < 3; ++i) poll();
  ASSERT_TRUE(a.is_open());
  network.die("a", 0);
  send(0);
  for (int i = 0; i < 3; ++i) poll();
  EXPECT_TRUE(b.lost);
  EXPECT_EQ(take_frame(b.in(), 0), Took::nothing);
  a.drop_peer();
  a.connect("b");
  poll();
  ASSERT_TRUE(a.lost);
  EXPECT_EQ(a.lost->message, "no node listens at 'b'");
  a.drop_peer();
  a.transport.reset();
  TestNode c(kinds[0], &network);
  ASSERT_EQ(c.listen("a"), "a");
  b.drop_peer();
  c.connect("b");
  for (int i = 0; i < 3; ++i) c.poll(), b.poll();
  EXPECT_TRUE(c.is_open() && b.is_open());
}

TEST_F(TheSimulatedNetwork, a_node_that_ends_is_lost_to_its_peers_and_to_nodes_that_were_connecting) {
  TestNode c(kinds[0], &network), d(kinds[0], &network);
  c.listen("c");
  a.drop_peer();
  a.connect("c");
  a.poll();
  c.poll();
  a.poll();
  ASSERT_TRUE(a.is_open());
  d.connect("c");
  c.peer.reset();
  c.transport.reset();
  for (int i = 0; i < 3; ++i) a.poll(), d.poll();
  ASSERT_TRUE(a.lost && d.lost);
  EXPECT_EQ(d.lost->message, "its node ended");
}

}  // namespace
}  // namespace tc::transport
