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
  void send() {
    ASSERT_NE(reserve(8), nullptr);
    commit(call(8));
  }

 private:
  bool transmit(OutBuffer&, size_t) noexcept override {
    ++messages;
    return true;
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
