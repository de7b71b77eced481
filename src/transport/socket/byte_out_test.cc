// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "transport/socket/byte_stream.h"
#include "transport/testing/test_channel.h"

namespace tc::transport {
namespace {

class AByteOut : public testing::Test, private ByteOut::Owner {
 protected:
  AByteOut() { out.open(channel); }
  // The number of whole frames that have left.
  uint32_t arrived() {
    TestChannel back;
    back.coming = channel.sent;
    ByteIn in;
    in.open();
    uint32_t frames = 0;
    while (in.fill(back).value() != 0) {
      while (take_frame(in, frames) == Took::frame) ++frames;
      in.release();
    }
    return frames;
  }

  TestChannel channel;
  PollState poll_state;
  FlushList list{poll_state};
  ByteOut out{list, *this};
  int full = 0;
  std::optional<Error> lost;

 private:
  void on_channel_full() noexcept override { ++full; }
  void on_channel_lost(Error why) noexcept override {
    lost = std::move(why);
    out.shut();
  }
};

TEST_F(AByteOut, a_single_frame_is_sent_at_once_and_the_next_ones_of_its_poll_together) {
  ASSERT_TRUE(put_frame(out, 0, 8));
  EXPECT_EQ(channel.sends, 1);
  ASSERT_TRUE(put_frame(out, 1, 8) && put_frame(out, 2, 8));
  EXPECT_EQ(channel.sends, 1);
  EXPECT_TRUE(poll_state.urgent) << "the node is asked for a progress";
  list.flush_all();
  EXPECT_EQ(channel.sends, 2);
  ++poll_state.poll_number;
  ASSERT_TRUE(put_frame(out, 3, 8));
  EXPECT_EQ(channel.sends, 3) << "a new poll";
  EXPECT_EQ(arrived(), 4u);
}

TEST_F(AByteOut, what_is_committed_while_the_node_gathers_is_sent_by_one_call) {
  poll_state.gathering = true;
  for (uint32_t i = 0; i < 3; ++i) ASSERT_TRUE(put_frame(out, i, 8));
  EXPECT_EQ(channel.sends, 0);
  poll_state.gathering = false;
  list.flush_all();
  EXPECT_EQ(channel.sends, 1);
  EXPECT_EQ(arrived(), 3u);
}

TEST_F(AByteOut, a_channel_that_takes_a_byte_at_a_time_gets_the_frames_whole) {
  channel.most_at_once = 1;
  for (uint32_t i = 0; i < 20; ++i) ASSERT_TRUE(put_frame(out, i, i * 10));
  out.flush();
  EXPECT_EQ(arrived(), 20u);
}

TEST_F(AByteOut, a_full_channel_makes_the_sender_wait_and_loses_nothing) {
  channel.room = 100;
  uint32_t sent = 0;
  while (put_frame(out, sent, 1000)) ++sent;
  EXPECT_GT(sent, 10u);
  EXPECT_GE(full, 1);
  EXPECT_EQ(channel.sent.size(), 100u);
  const int sends = channel.sends;
  out.flush();
  EXPECT_EQ(channel.sends, sends) << "the channel is not tried again before it reports room";
  channel.room = SIZE_MAX;
  out.on_channel_room();
  EXPECT_EQ(arrived(), sent);
  EXPECT_TRUE(put_frame(out, sent, 1000));
}

TEST_F(AByteOut, room_that_comes_in_any_portions_gives_all_frames_in_order) {
  channel.room = 0;
  Random random(2);
  uint32_t sent = 0;
  while (sent < 2000) {
    ++poll_state.poll_number;
    if (const std::byte* const at = out.reserve(100)) {
      ASSERT_EQ(reinterpret_cast<uintptr_t>(at) % 16, 8u) << "whatever portion of a frame has left";
    }
    if (put_frame(out, sent, random.below(3000))) {
      ++sent;
      continue;
    }
    channel.room = random.below(40'000);
    out.on_channel_room();
  }
  channel.room = SIZE_MAX;
  out.on_channel_room();
  EXPECT_EQ(arrived(), sent);
}

TEST_F(AByteOut, a_channel_that_is_lost_is_told_once_and_grants_nothing_more) {
  channel.end = Error{TC_ERR_DISCONNECTED, "connection reset"};
  ASSERT_TRUE(put_frame(out, 0, 8));
  ASSERT_TRUE(lost);
  EXPECT_EQ(lost->message, "connection reset");
  EXPECT_EQ(out.reserve(8), nullptr);
  EXPECT_EQ(out.max_length(), 0u);
  out.flush();
  EXPECT_EQ(channel.sends, 1);
}

TEST_F(AByteOut, a_channel_that_is_lost_while_room_is_made_grants_nothing) {
  channel.room = 0;
  uint32_t sent = 0;
  while (put_frame(out, sent, 1000)) ++sent;
  channel.room = SIZE_MAX;
  channel.end = Error{TC_ERR_DISCONNECTED, "connection reset"};
  out.on_channel_room();
  EXPECT_EQ(out.reserve(1000), nullptr);
  EXPECT_TRUE(lost);
}

TEST_F(AByteOut, what_was_not_sent_is_there_when_it_is_shut) {
  channel.room = 10;
  for (uint32_t i = 0; i < 3; ++i) ASSERT_TRUE(put_frame(out, i, 40));
  out.shut();
  channel.sent.insert(channel.sent.end(), out.unsent().begin(), out.unsent().end());
  EXPECT_EQ(arrived(), 3u);
  EXPECT_TRUE(list.empty());
}

TEST_F(AByteOut, the_longest_frame_is_granted_and_a_longer_one_is_not) {
  EXPECT_EQ(out.max_length(), byte_frame_length);
  for (uint32_t i = 0; i < 5; ++i) ASSERT_TRUE(put_frame(out, i, out.max_length()));
  EXPECT_EQ(out.reserve(3 * out.max_length()), nullptr);
  out.flush();
  EXPECT_EQ(arrived(), 5u);
}

TEST_F(AByteOut, a_full_channel_lets_the_buffer_be_filled_to_its_last_byte) {
  channel.room = 0;
  uint32_t sent = 0;
  while (put_frame(out, sent, 8)) ++sent;
  EXPECT_EQ(sent, byte_buffer_capacity / wire::stride(8));
  channel.room = 160;
  out.on_channel_room();
  for (uint32_t i = 0; i < 10; ++i) EXPECT_TRUE(put_frame(out, sent++, 8)) << i;
  EXPECT_FALSE(put_frame(out, sent, 8)) << "as many as have left";
  channel.room = SIZE_MAX;
  out.on_channel_room();
  EXPECT_EQ(arrived(), sent);
}

// The padding between frames is sent: it must not show what was in that memory before.
TEST_F(AByteOut, the_padding_of_a_fresh_stream_is_zero) {
  ASSERT_TRUE(put_frame(out, 0, 1));
  ASSERT_EQ(channel.sent.size(), 16u);
  EXPECT_EQ(Bytes(channel.sent.begin() + 9, channel.sent.end()), Bytes(7));
}

}  // namespace
}  // namespace tc::transport
