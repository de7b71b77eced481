// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "transport/socket/byte_stream.h"
#include "transport/testing/test_channel.h"

namespace tc::transport {
namespace {

using wire::Kind;

class AByteIn : public testing::Test {
 protected:
  AByteIn() { in.open(); }
  void comes(const Bytes& bytes) { channel.coming.insert(channel.coming.end(), bytes.begin(), bytes.end()); }
  // Takes in all that comes; how many frames it found.
  uint32_t take_all(uint32_t from = 0) {
    uint32_t frames = from;
    while (in.has_room()) {
      const auto got = in.fill(channel);
      if (!got || *got == 0) break;
      while (take_frame(in, frames) == Took::frame) ++frames;
      in.release();
    }
    return frames - from;
  }
  TestChannel channel;
  ByteIn in;
};

TEST_F(AByteIn, frames_are_found_whole_and_in_order_however_the_bytes_are_cut) {
  Bytes all;
  Random random(1);
  for (uint32_t i = 0; i < 200; ++i) {
    const Bytes frame = frame_bytes(i, random.below(i % 20 == 0 ? byte_frame_length + 1 : 200));
    all.insert(all.end(), frame.begin(), frame.end());
  }
  for (const size_t cut : {size_t{7}, size_t{8}, size_t{15}, size_t{16}, size_t{4099}, SIZE_MAX}) {
    TestChannel pieces;
    pieces.coming = all;
    pieces.most_at_once = cut;
    ByteIn reader;
    reader.open();
    uint32_t frames = 0;
    while (reader.fill(pieces).value() != 0) {
      while (take_frame(reader, frames) == Took::frame) ++frames;
      reader.release();
    }
    EXPECT_EQ(frames, 200u) << cut;
  }
}

TEST_F(AByteIn, a_frame_that_comes_byte_by_byte_is_not_there_before_its_last_one) {
  const Bytes frame = frame_bytes(0, 40);
  comes(frame);
  channel.most_at_once = 1;
  for (size_t i = 0; i < frame.size(); ++i) {
    EXPECT_EQ(take_frame(in, 0), Took::nothing) << i;
    ASSERT_EQ(in.fill(channel).value(), 1u);
  }
  EXPECT_EQ(take_frame(in, 0), Took::frame);
}

TEST_F(AByteIn, a_stream_that_is_truncated_at_any_byte_gives_the_frames_before_and_no_more) {
  Bytes all;
  std::vector<size_t> ends;
  for (uint32_t i = 0; i < 5; ++i) {
    const Bytes frame = frame_bytes(i, i * 13);
    all.insert(all.end(), frame.begin(), frame.end());
    ends.push_back(all.size());
  }
  for (size_t size = 0; size < all.size(); ++size) {
    ByteIn reader;
    reader.open();
    TestChannel cut;
    cut.coming.assign(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(size));
    cut.end = Error{TC_ERR_DISCONNECTED, "it ended"};
    uint32_t frames = 0;
    while (reader.fill(cut))
      while (take_frame(reader, frames) == Took::frame) ++frames;
    EXPECT_EQ(frames, std::ranges::count_if(ends, [&](size_t end) { return end <= size; })) << size;
    EXPECT_FALSE(reader.broken()) << size;
  }
}

TEST_F(AByteIn, a_header_with_any_bit_flipped_is_broken_or_another_frame_and_stays_inside) {
  for (unsigned bit = 0; bit < 64; ++bit) {
    Bytes bytes = frame_bytes(0, 40);
    bytes[bit / 8] ^= static_cast<std::byte>(1u << bit % 8);
    const auto header = wire::decode(load_header(bytes.data()));
    bytes.resize(bytes.size() + 100);  // zeroes follow
    ByteIn reader;
    reader.open();
    TestChannel flipped;
    flipped.coming = bytes;
    ASSERT_TRUE(reader.fill(flipped));
    (void)take_anything(reader);
    if (header.length > byte_frame_length) {
      EXPECT_TRUE(reader.broken()) << bit;
    }
  }
}

TEST_F(AByteIn, the_longest_frame_is_taken_and_a_longer_one_is_broken_before_it_has_come) {
  comes(frame_bytes(0, byte_frame_length));
  EXPECT_EQ(take_all(), 1u);
  comes(Bytes(8));
  const uint64_t header = call_header(1, byte_frame_length + 1);
  std::memcpy(channel.coming.data() + channel.coming.size() - 8, &header, sizeof header);
  ASSERT_TRUE(in.fill(channel));
  EXPECT_FALSE(in.refill());
  EXPECT_TRUE(in.broken());
}

TEST_F(AByteIn, pads_are_skipped) {
  Bytes pad(wire::stride(24));
  const uint64_t header = wire::encode(Kind::pad, 0, 0, 24);
  std::memcpy(pad.data(), &header, sizeof header);
  comes(pad);
  comes(frame_bytes(0, 8));
  EXPECT_EQ(take_all(), 1u);
}

// A header of zeroes is no frame, and hides any behind it. No correct sender writes one.
TEST_F(AByteIn, zeroes_are_no_frames) {
  comes(Bytes(4096));
  EXPECT_EQ(take_all(), 0u);
  EXPECT_EQ(in.peek(), 0u);
}

TEST_F(AByteIn, a_peer_whose_frames_are_not_read_is_no_longer_received_from) {
  comes(Bytes(1 << 20, std::byte{1}));
  size_t got = 0;
  for (int i = 0; i < 100 && in.has_room(); ++i) got += in.fill(channel).value();
  EXPECT_FALSE(in.has_room());
  EXPECT_LE(got, 2 * (byte_frame_length + wire::header_bytes));
}

TEST_F(AByteIn, frames_stay_readable_when_it_is_shut_and_no_more_come) {
  comes(frame_bytes(0, 8));
  ASSERT_TRUE(in.fill(channel));
  in.shut();
  comes(frame_bytes(1, 8));
  EXPECT_EQ(in.fill(channel).value(), 0u);
  EXPECT_EQ(take_frame(in, 0), Took::frame);
  EXPECT_EQ(take_frame(in, 1), Took::nothing);
}

// Its reader found frames of old bytes behind the last one, and a peer that had ended broke the protocol.
TEST_F(AByteIn, behind_frames_that_are_read_after_the_end_of_the_channel_there_are_none) {
  uint32_t frames = 0;
  for (; channel.coming.size() + 1200 < byte_buffer_capacity; ++frames)
    comes(frame_bytes(frames, 900 + frames * 37 % 201));
  ASSERT_EQ(in.fill(channel).value(), channel.coming.size());
  uint32_t taken = 0;
  while (taken < 20 && take_frame(in, taken) == Took::frame) ++taken;
  ASSERT_EQ(taken, 20u);
  channel.end = Error{TC_ERR_DISCONNECTED, "it ended"};
  ASSERT_TRUE(in.has_room());
  ASSERT_FALSE(in.fill(channel)) << "what was left has moved to the front";
  while (take_frame(in, taken) == Took::frame) ++taken;
  EXPECT_EQ(taken, frames);
  EXPECT_FALSE(in.refill());
  EXPECT_FALSE(in.broken());
}

TEST_F(AByteIn, one_that_was_never_opened_has_nothing_and_takes_nothing) {
  ByteIn closed;
  EXPECT_EQ(closed.peek(), 0u);
  EXPECT_FALSE(closed.refill());
  closed.release();
}

TEST_F(AByteIn, every_frame_lies_at_8_modulo_16) {
  for (uint32_t i = 0; i < 50; ++i) comes(frame_bytes(i, i));
  channel.most_at_once = 33;
  for (uint32_t i = 0; i < 50;) {
    const Took took = take_frame(in, i);
    ASSERT_NE(took, Took::wrong) << i;
    if (took == Took::nothing) {
      ASSERT_NE(in.fill(channel).value(), 0u);
      continue;
    }
    EXPECT_EQ(reinterpret_cast<uintptr_t>(in.at()) % 16, 8u) << i;
    ++i;
  }
}

}  // namespace
}  // namespace tc::transport
