// SPDX-License-Identifier: Apache-2.0
#include "transport/batch_in.h"
#include "transport/batch_out.h"
#include "transport/transport_test_kit.h"

namespace tc::transport {
namespace {

using wire::Kind;

Bytes frames(std::initializer_list<std::pair<uint64_t, size_t>> list) {
  Bytes out;
  for (const auto& [header, body] : list) {
    Writer(out).u64(header);
    out.resize(out.size() + body);
  }
  return out;
}

constexpr uint64_t call(uint32_t length) { return wire::encode(Kind::call, 0, 1, length); }

TEST(BatchIn, a_batch_may_end_with_or_without_the_padding_of_its_last_frame) {
  BatchIn in(1024, 1024);
  EXPECT_TRUE(in.append(frames({{call(1), 1}})));
  EXPECT_TRUE(in.append(frames({{call(1), 8}})));
  EXPECT_EQ(in.received(), 32u);
}

TEST(BatchIn, says_how_many_frames_a_batch_holds) {
  BatchIn in(1024, 1024);
  EXPECT_EQ(in.append(frames({{call(1), 1}})).value(), 1u);
  EXPECT_EQ(in.append(frames({{call(1), 8}})).value(), 1u) << "with its padding";
  EXPECT_EQ(in.append(frames({{call(40), 40}})).value(), 1u);
  EXPECT_EQ(in.append(frames({{call(8), 8}, {call(8), 8}})).value(), 2u);
  EXPECT_EQ(in.append(frames({{call(1), 8}, {call(1), 1}})).value(), 2u);
  EXPECT_EQ(in.append({}).value(), 0u);
}

// Counts the messages that it is handed.
class CountingOut final : public BatchOut {
 public:
  explicit CountingOut(FlushList& list) : BatchOut(list) { open(1024, 16384); }
  int messages = 0;
  size_t bytes = 0;               // of the last message
  bool wire_is_full = false;      // it keeps what it is handed
  OutBuffer* kept = nullptr;      // the last one
  const std::byte* at = nullptr;  // where the last message lay
  void send() {
    ASSERT_NE(reserve(8), nullptr);
    commit(call(8));
  }
  bool send_alone(uint32_t length = 8) {
    const Bytes body(length);
    return put_alone(call(length), {body});
  }

 private:
  bool transmit(OutBuffer& buffer, std::byte* first, size_t size) noexcept override {
    ++messages;
    bytes = size;
    at = first;
    EXPECT_EQ(first, buffer.base());
    EXPECT_EQ(wire::decode(load_header(first)).kind, Kind::call);
    if (wire_is_full) kept = &buffer;
    return !wire_is_full;
  }
};

TEST(BatchOut, a_lone_frame_leaves_at_once_and_the_next_ones_together) {
  Pulse pulse;
  FlushList list{pulse};
  CountingOut out(list);
  out.send();
  EXPECT_EQ(out.messages, 1);
  out.send();
  out.send();
  EXPECT_EQ(out.messages, 1);
  list.flush_all();
  EXPECT_EQ(out.messages, 2);
}

TEST(BatchOut, what_is_sent_while_the_node_gathers_leaves_in_one_message) {
  Pulse pulse;
  FlushList list{pulse};
  CountingOut out(list);
  pulse.gathering = true;
  for (int i = 0; i < 3; ++i) out.send();
  EXPECT_EQ(out.messages, 0);
  pulse.urgent = false;
  pulse.gathering = false;
  list.flush_all();
  EXPECT_EQ(out.messages, 1);
  out.send();
  EXPECT_EQ(out.messages, 2) << "fresh again";
}

TEST(BatchOut, a_frame_that_is_to_leave_alone_does_so_once_a_turn_and_needs_no_flush) {
  Pulse pulse;
  FlushList list{pulse};
  CountingOut out(list);
  for (int turn = 1; turn <= 3; ++turn, ++pulse.turn) {
    ASSERT_TRUE(out.send_alone(5));
    EXPECT_EQ(out.messages, turn);
    EXPECT_EQ(out.bytes, wire::header_bytes + 5u) << "without its padding";
    EXPECT_TRUE(list.empty());
  }
  ASSERT_TRUE(out.send_alone());
  ASSERT_TRUE(out.send_alone());
  out.send();
  EXPECT_EQ(out.messages, 4) << "what follows in the same turn is gathered";
  list.flush_all();
  EXPECT_EQ(out.messages, 5);
  EXPECT_EQ(out.bytes, 2 * wire::stride(8));
}

TEST(BatchOut, pieces_of_any_length_lie_behind_one_another_and_nothing_else_is_written) {
  std::vector<std::byte> from(3 * 70);
  for (size_t i = 0; i < from.size(); ++i) from[i] = static_cast<std::byte>(i + 1);
  for (size_t first = 0; first < 70; ++first)
    for (const size_t second : {0, 1, 15, 16, 17, 31, 32, 33, 69}) {
      std::vector<std::byte> to(150), expected(150);
      const ByteView one(from.data(), first), two(from.data() + 70, second), three(from.data() + 140, 8);
      copy_pieces(to.data(), {one, two, three});
      auto at = std::ranges::copy(one, expected.begin()).out;
      at = std::ranges::copy(two, at).out;
      std::ranges::copy(three, at);
      EXPECT_EQ(to, expected) << first << " and " << second;
    }
}

TEST(BatchOut, no_frame_that_is_to_leave_alone_overtakes_others) {
  Pulse pulse;
  FlushList list{pulse};
  CountingOut out(list);
  out.send();
  out.send();  // waits
  ++pulse.turn;
  ASSERT_TRUE(out.send_alone());
  EXPECT_EQ(out.messages, 1);
  list.flush_all();
  EXPECT_EQ(out.messages, 2);
  EXPECT_EQ(out.bytes, 2 * wire::stride(8));
  pulse.gathering = true;
  ++pulse.turn;
  ASSERT_TRUE(out.send_alone());
  EXPECT_EQ(out.messages, 2) << "the node gathers";
}

TEST(BatchOut, frames_that_leave_alone_use_up_the_window_and_get_it_back) {
  Pulse pulse;
  FlushList list{pulse};
  CountingOut out(list);
  const auto fill = [&] {
    uint64_t sent = 0;
    for (; out.send_alone(40); sent += wire::stride(40)) {
      ++pulse.turn;
      if (sent > 1 << 20) break;
    }
    return sent;
  };
  const auto sent = fill();
  EXPECT_LE(sent, 16384u);
  EXPECT_GT(sent, 16384u - wire::stride(40));
  EXPECT_FALSE(out.credit(sent + 16)) << "more than was sent";
  EXPECT_TRUE(out.credit(wire::stride(40) * 10));
  EXPECT_EQ(fill(), wire::stride(40) * 10);
}

TEST(BatchOut, a_frame_that_left_alone_stays_where_it_is_while_the_wire_reads_it) {
  Pulse pulse;
  FlushList list{pulse};
  CountingOut out(list);
  out.wire_is_full = true;
  ASSERT_TRUE(out.send_alone());
  EXPECT_EQ(out.in_flight(), 1u);
  const auto* const first = out.at;
  OutBuffer* const kept = out.kept;
  out.wire_is_full = false;
  ++pulse.turn;
  ASSERT_TRUE(out.send_alone());
  EXPECT_NE(out.at, first);
  out.give_back(*kept);
  EXPECT_EQ(out.in_flight(), 0u);
}

TEST(BatchIn, lengths_that_lie_are_refused_with_both_values) {
  BatchIn in(1024, 1024);
  const auto taken = in.append(frames({{call(8), 8}, {call(24), 8}}));
  ASSERT_FALSE(taken);
  EXPECT_EQ(taken.error().message, "the frame at 16 is 24 bytes when only 8 are left in its batch");
  EXPECT_FALSE(in.append(frames({{call(0xffffffff), 8}})));
  EXPECT_FALSE(in.append(frames({{call(8), 8}, {0, 8}})));
  EXPECT_FALSE(in.append(Bytes(5)));
  EXPECT_EQ(in.peek(), 0u);
  EXPECT_FALSE(in.refill());
}

TEST(BatchIn, a_batch_over_the_limit_and_a_peer_that_ignores_its_window_are_refused) {
  BatchIn in(64, 96);
  EXPECT_EQ(in.append(frames({{call(64), 64}})).error().code, TC_ERR_TOO_LARGE);
  ASSERT_TRUE(in.append(frames({{call(56), 56}})));
  const auto taken = in.append(frames({{call(40), 40}}));
  ASSERT_FALSE(taken);
  EXPECT_EQ(taken.error().message, "the peer sent 112 bytes ahead when its window is 96");
  in.advance(56);
  EXPECT_TRUE(in.append(frames({{call(40), 40}})));
}

TEST(BatchIn, pads_are_skipped) {
  BatchIn in(1024, 1024);
  ASSERT_TRUE(in.append(frames({{wire::encode(Kind::pad, 0, 0, 24), 24}, {call(8), 8}})));
  ASSERT_TRUE(in.refill());
  EXPECT_EQ(in.peek(), call(8));
  EXPECT_EQ(in.consumed(), 32u);
}

TEST(BatchIn, many_small_batches_cost_no_more_than_their_frames_and_stay_readable_until_release) {
  BatchIn in(4096, 16u << 20);
  const Bytes batch = frames({{call(8), 8}});
  for (int i = 0; i < 100000; ++i) ASSERT_TRUE(in.append(batch));
  const std::byte* const first = in.at();
  for (int i = 0; i < 100000; ++i) {
    if (in.peek() == 0) {
      ASSERT_TRUE(in.refill());
    }
    ASSERT_EQ(in.peek(), call(8));
    ASSERT_TRUE(in.fits(8));
    in.advance(8);
  }
  EXPECT_EQ(load_header(first), call(8));
  EXPECT_EQ(in.consumed(), in.received());
  in.release();
  EXPECT_EQ(in.consumed(), in.received());
  EXPECT_FALSE(in.refill());
  ASSERT_TRUE(in.append(batch));
  EXPECT_EQ(in.peek(), call(8));
}

}  // namespace
}  // namespace tc::transport
