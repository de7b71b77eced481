// SPDX-License-Identifier: Apache-2.0
//
// What a peer that has greeted may send over TCP: bytes that are no frames, frames that are truncated, torn, too long.
#include "transport/testing/raw_peer.h"

namespace tc::transport {
namespace {

class AHostileSocket : public AttackedNode {
 protected:
  void SetUp() override {
    start(socket_kind);
    node->when_notified = [this](Connection& connection) {
      if (&connection == to_witness.get()) return;
      while (take_frame(connection.in(), frames) == Took::frame) ++frames;
      connection.in().release();
    };
  }
  // A peer that has greeted.
  RawPeer connect_raw() {
    frames = 0;
    RawPeer raw(kind, address);
    (void)raw.send(encode_greeting({"tcp", {}, Bytes(10)}));
    EXPECT_TRUE(poll_until([&] { return raw.receive() && node->opened == 1 && !raw.received.empty(); }));
    return raw;
  }
  void say_all(RawPeer& raw, ByteView bytes) {
    while (!bytes.empty()) {
      bytes = bytes.subspan(raw.send(bytes));
      poll(1);
    }
  }
  uint32_t frames = 0;  // that came whole and right
};

TEST_F(AHostileSocket, frames_truncated_at_any_byte_are_the_whole_ones_before_and_a_loss) {
  Bytes all;
  std::vector<size_t> ends;
  for (uint32_t i = 0; i < 4; ++i) {
    const Bytes frame = frame_bytes(i, 10 * i);
    all.insert(all.end(), frame.begin(), frame.end());
    ends.push_back(all.size());
  }
  for (size_t size = 0; size <= all.size(); ++size) {
    SCOPED_TRACE(size);
    RawPeer raw = connect_raw();
    say_all(raw, ByteView(all).first(size));
    if (size % 2 == 0)
      raw.end_writing();
    else
      raw.vanish();
    ASSERT_TRUE(poll_until([&] { return node->lost.has_value(); }));
    EXPECT_EQ(node->lost->message, "it closed its socket without disconnecting first");
    EXPECT_EQ(frames, std::ranges::count_if(ends, [&](size_t end) { return end <= size; }));
    forget();
  }
  expect_witness_is_served();
  expect_nothing_is_left();
}

TEST_F(AHostileSocket, frames_that_come_byte_by_byte_are_the_same_frames) {
  RawPeer raw = connect_raw();
  for (uint32_t i = 0; i < 20; ++i)
    for (const std::byte byte : frame_bytes(i, i)) {
      ASSERT_EQ(raw.send({&byte, 1}), 1u);
      node->poll();
    }
  EXPECT_TRUE(poll_until([&] { return frames == 20; }));
  EXPECT_FALSE(node->lost);
}

TEST_F(AHostileSocket, a_header_with_any_bit_flipped_is_another_frame_or_a_broken_stream) {
  node->when_notified = [this](Connection& connection) {
    if (&connection != to_witness.get()) (void)take_anything(connection.in());
  };
  unsigned broken = 0;
  for (unsigned bit = 0; bit < 64; ++bit) {
    SCOPED_TRACE(bit);
    RawPeer raw = connect_raw();
    const Bytes frame = with_bit_flipped(frame_bytes(0, 40), bit);
    say_all(raw, frame);
    poll();
    if (wire::decode(load_header(frame.data())).length > 64 * 1024) {
      EXPECT_TRUE(node->in().broken());
    }
    broken += node->in().broken() ? 1 : 0;
    node->peer->drop();  // as the node does with a peer whose stream is broken
    EXPECT_TRUE(poll_until([&] { return !raw.receive(); }));
    forget();
  }
  EXPECT_GE(broken, 16u);
  expect_witness_is_served();
  expect_nothing_is_left();
}

TEST_F(AHostileSocket, noise_breaks_its_own_stream_and_nothing_else) {
  node->when_notified = [this](Connection& connection) {
    if (&connection != to_witness.get()) (void)take_anything(connection.in());
  };
  Random random(11);
  for (int round = 0; round < 50; ++round) {
    RawPeer raw = connect_raw();
    Bytes noise(1 + random.below(200'000));
    for (auto& byte : noise) byte = static_cast<std::byte>(random.next());
    if (round % 2 == 0) std::memset(noise.data() + 4, 0, 4);  // a short frame first
    for (ByteView rest = noise; !rest.empty() && !node->in().broken(); poll(1)) rest = rest.subspan(raw.send(rest));
    EXPECT_TRUE(node->in().broken() || !node->in().fits(0) || noise.size() < 70'000) << round;
    node->peer->drop();
    EXPECT_TRUE(poll_until([&] { return !raw.receive(); }));
    forget();
  }
  expect_witness_is_served();
  expect_nothing_is_left();
}

TEST_F(AHostileSocket, a_reset_is_a_loss_with_the_systems_reason) {
  RawPeer raw = connect_raw();
  say_all(raw, ByteView(frame_bytes(0, 100)).first(50));
  raw.reset();
  ASSERT_TRUE(poll_until([&] { return node->lost.has_value(); }));
  EXPECT_NE(node->lost->message.find("reset"), std::string::npos) << node->lost->message;
  expect_witness_is_served();
}

TEST_F(AHostileSocket, one_that_sends_and_never_reads_costs_the_others_nothing) {
  RawPeer raw = connect_raw();
  uint32_t sent = 0;
  for (int idle = 0; idle < 100;) {
    if (put_frame(node->out(), sent, 10'000)) {
      ++sent;
      idle = 0;
    } else {
      ++idle;
      poll(1);
    }
  }
  EXPECT_GT(sent, 10u);
  expect_witness_is_served();
  raw.reset();
  EXPECT_TRUE(poll_until([&] { return node->lost.has_value(); }));
  expect_witness_is_served();
}

TEST_F(AHostileSocket, half_a_frame_that_never_ends_costs_no_cpu_in_a_sleep) {
  RawPeer raw = connect_raw();
  say_all(raw, ByteView(frame_bytes(0, 1000)).first(500));
  poll();
  int sleeps = 0;
  for (const auto deadline = Deadline::after_ms(100); !deadline.passed(); ++sleeps) {
    node->sleep(100);
    node->poll();
  }
  EXPECT_LT(sleeps, 10);
  say_all(raw, ByteView(frame_bytes(0, 1000)).subspan(500));
  EXPECT_TRUE(poll_until([&] { return frames == 1; }));
}

}  // namespace
}  // namespace tc::transport
