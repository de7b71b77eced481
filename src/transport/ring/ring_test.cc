// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <thread>

#include "transport/testing/ring_pair.h"

namespace tc::transport {
namespace {

using wire::Kind;

TEST(ARing, frames_lie_as_documented) {
  RingPair ring(4096);
  const std::byte* const data = ring.view.data;
  EXPECT_EQ(reinterpret_cast<uintptr_t>(data + 8) % 64, 8u);
  ASSERT_TRUE(ring.put(5, 1));
  ASSERT_TRUE(ring.put(6, 9));
  EXPECT_EQ(load_header(data + 8), wire::encode(Kind::call, 0, 5, 1));
  EXPECT_EQ(load_header(data + 24), wire::encode(Kind::call, 0, 6, 9));
  EXPECT_EQ(load_header(data + 56), 0u);
}

TEST(ARing, a_frame_that_does_not_fit_the_lap_is_preceded_by_a_pad_to_offset_8) {
  RingPair ring(4096);
  uint32_t number = 0;
  for (; number < 4; ++number) {
    ASSERT_TRUE(ring.put(number, 1000));  // strides of 1008
    ASSERT_EQ(take_frame(ring.in, number), Took::frame);
  }
  ring.in.release();
  ASSERT_TRUE(ring.put(number, 1000));
  const size_t offset = 8 + 4 * 1008;
  const auto pad = wire::decode(load_header(ring.view.data + offset));
  EXPECT_EQ(pad.kind, Kind::pad);
  EXPECT_EQ(offset + wire::stride(pad.length), 4096u + 8u);
  EXPECT_EQ(take_frame(ring.in, number), Took::frame);
  EXPECT_EQ(ring.in.consumed(), 4096u + 1008u);
}

TEST(ARing, a_frame_may_end_exactly_where_the_ring_does) {
  RingPair ring(4096);
  for (uint32_t i = 0; i < 255; ++i) {  // up to offset 8 + 255 * 16 = 4088
    ASSERT_TRUE(ring.put(i, 8));
    ASSERT_EQ(take_frame(ring.in, i), Took::frame);
    ring.in.release();
  }
  for (uint32_t i = 255; i < 600; ++i) {
    ASSERT_TRUE(ring.put(i, 8));
    ASSERT_EQ(take_frame(ring.in, i), Took::frame);
    ring.in.release();
  }
}

// Every offset is met with frames of every size up to the longest.
TEST(ARing, frames_of_random_sizes_pass_at_every_offset) {
  RingPair ring(4096);
  Random random(3);
  std::vector<bool> met(4096);
  uint32_t sent = 0, received = 0;
  while (received < 300000) {
    for (size_t burst = random.below(20); burst != 0 && sent < 300000; --burst) {
      const size_t length = random.below(random.below(8) == 0 ? ring.out.max_length() + 1 : 60);
      const std::byte* const at = ring.out.reserve(length);
      if (at == nullptr) break;
      met[static_cast<size_t>(at - ring.view.data)] = true;
      ASSERT_TRUE(put_frame(ring.out, sent++, length));
    }
    ring.out.flush();
    for (size_t burst = random.below(30); burst != 0; --burst) {
      const Took took = take_frame(ring.in, received);
      ASSERT_NE(took, Took::wrong) << received;
      if (took == Took::nothing) break;
      ++received;
    }
    ring.in.release();
  }
  for (size_t offset = 8; offset < 4088; offset += 16) EXPECT_TRUE(met[offset]) << offset;
}

TEST(ARing, two_threads_pass_a_million_frames) {
  RingPair ring(16384);
  constexpr uint32_t frames = 1'000'000;
  std::thread writer([&] {
    Random random(5);
    for (uint32_t i = 0; i < frames; ++i)
      for (const size_t length = random.below(48); !put_frame(ring.out, i, length);) std::this_thread::yield();
    ring.out.flush();
  });
  uint32_t received = 0;
  bool wrong = false;
  while (received < frames && !wrong) {
    switch (take_frame(ring.in, received)) {
      case Took::frame: ++received; break;
      case Took::wrong: wrong = true; break;
      case Took::nothing: ring.in.release(); std::this_thread::yield();
    }
  }
  EXPECT_FALSE(wrong) << received;
  if (wrong) std::_Exit(1);  // the writer would wait for ever
  writer.join();
}

TEST(ARing, the_first_frame_of_a_poll_is_visible_at_once_and_those_behind_it_together) {
  if (!speed::hold) GTEST_SKIP() << "built without the device";
  RingPair ring(4096);
  ASSERT_TRUE(put_frame(ring.out, 0, 8));
  EXPECT_EQ(take_frame(ring.in, 0), Took::frame);
  for (uint32_t i = 1; i < 5; ++i) ASSERT_TRUE(put_frame(ring.out, i, 8));
  EXPECT_EQ(take_frame(ring.in, 1), Took::frame) << "the second one shows that more may come";
  EXPECT_EQ(take_frame(ring.in, 2), Took::nothing);
  EXPECT_TRUE(ring.poll_state.urgent) << "the node is asked for a progress";
  ring.list.flush_all();
  for (uint32_t i = 2; i < 5; ++i) EXPECT_EQ(take_frame(ring.in, i), Took::frame);
  ++ring.poll_state.poll_number;
  ASSERT_TRUE(put_frame(ring.out, 5, 8));
  EXPECT_EQ(take_frame(ring.in, 5), Took::frame) << "a new poll";
}

TEST(ARing, a_burst_becomes_visible_as_a_whole) {
  RingPair ring(4096);
  const std::vector<std::byte> body(64, std::byte{7});
  OutStream::Burst burst(ring.out);
  for (const uint32_t length : {1u, 8u, 9u, 24u, 60u})
    ASSERT_TRUE(burst.add(wire::encode(Kind::call, 0, length, length), body.data()));
  EXPECT_EQ(ring.in.peek(), 0u);
  burst.publish();
  for (const uint32_t length : {1u, 8u, 9u, 24u, 60u}) {
    EXPECT_EQ(ring.in.peek(), wire::encode(Kind::call, 0, length, length));
    EXPECT_EQ(std::memcmp(ring.in.body(), body.data(), length), 0);
    ring.in.advance(length);
  }
  EXPECT_EQ(ring.in.peek(), 0u);
}

TEST(ARing, a_burst_takes_no_more_than_there_is_room_for) {
  RingPair ring(4096);
  const std::vector<std::byte> body(64);
  ASSERT_NE(ring.out.reserve(1), nullptr);  // asks how much room there is
  uint32_t added = 0;
  OutStream::Burst full(ring.out);
  while (full.add(wire::encode(Kind::call, 0, added, 8), body.data())) ++added;
  full.publish();
  EXPECT_GT(added, 100u);
  EXPECT_LT(added, 256u);
  for (uint32_t i = 0; i < added; ++i) {
    ASSERT_EQ(ring.in.peek(), wire::encode(Kind::call, 0, i, 8));
    ring.in.advance(8);
  }
  EXPECT_EQ(ring.in.peek(), 0u);
}

TEST(ARing, frames_held_back_become_visible_when_there_are_many_or_the_ring_is_full) {
  RingPair ring(4096);
  uint32_t sent = 0, received = 0;
  while (put_frame(ring.out, sent, 8)) ++sent;
  EXPECT_EQ(sent, 255u);
  while (take_frame(ring.in, received) == Took::frame) ++received;
  EXPECT_EQ(received, sent) << "a sender that waits for room lets all be read";
}

TEST(ARing, frames_held_back_wake_a_sleeping_reader_when_they_become_visible) {
  if (!speed::hold) GTEST_SKIP() << "built without the device";
  RingPair ring(4096);
  for (uint32_t i = 0; i < 3; ++i) ASSERT_TRUE(put_frame(ring.out, i, 8));
  ring.in.set_sleeping(true);
  ASSERT_TRUE(put_frame(ring.out, 3, 8));
  EXPECT_EQ(ring.rings, 0);
  ring.out.flush();
  EXPECT_EQ(ring.rings, 1);
}

TEST(ARing, a_full_ring_refuses_and_recovers_when_it_was_read) {
  RingPair ring(4096);
  uint32_t sent = 0, received = 0;
  while (ring.put(sent, 100)) ++sent;
  EXPECT_GE(sent, 4096u / 112u - 2u);
  EXPECT_EQ(ring.out.reserve(100), nullptr);
  while (take_frame(ring.in, received) == Took::frame) ++received;
  EXPECT_EQ(received, sent);
  EXPECT_EQ(ring.out.reserve(100), nullptr);  // not released yet: the bytes are still the reader's
  ring.in.release();
  EXPECT_TRUE(ring.put(sent, 100));
  EXPECT_EQ(take_frame(ring.in, received), Took::frame);
}

TEST(ARing, the_longest_frame_is_granted_from_any_place_of_an_empty_ring) {
  for (uint32_t before = 0; before < 255; ++before) {
    RingPair ring(4096);
    for (uint32_t i = 0; i < before; ++i) {
      ASSERT_TRUE(ring.put(i, 8));
      ASSERT_EQ(take_frame(ring.in, i), Took::frame);
      ring.in.release();
    }
    ASSERT_TRUE(ring.put(before, ring.out.max_length())) << before;
    EXPECT_EQ(take_frame(ring.in, before), Took::frame);
  }
}

// ---- Pieces of large frames, which use all of it

constexpr size_t usual_bytes = 4096, all_bytes = 32 * usual_bytes;

bool put_piece(RingPair& ring, uint32_t number, size_t length) {
  const auto body = patterned(number, length);
  const ByteView part(body);
  const GatheredFrame piece{call_header(number, length), {&part, 1}};
  const bool fits = ring.out.put_gathered({&piece, 1}) == 1;
  ring.out.flush();
  return fits;
}

// Where the next frame lay, which is taken off.
size_t take(RingPair& ring, uint32_t number) {
  while (ring.in.peek() != 0 && wire::decode(ring.in.peek()).kind == Kind::pad) EXPECT_TRUE(ring.in.refill());
  const auto offset = static_cast<size_t>(ring.in.at() - ring.view.data);
  EXPECT_EQ(take_frame(ring.in, number), Took::frame) << number;
  ring.in.release();
  return offset;
}

TEST(ARing, frames_stay_in_its_first_bytes_as_long_as_there_are_no_pieces) {
  RingPair ring(all_bytes, usual_bytes);
  EXPECT_EQ(ring.out.max_length(), ring_max_length(usual_bytes));
  EXPECT_EQ(ring.out.piece_length(), ring_piece_length(usual_bytes));
  Random random(7);
  for (uint32_t i = 0; i < 10'000; ++i) {
    const size_t length = random.below(ring.out.max_length() + 1);
    ASSERT_TRUE(ring.put(i, length));
    ASSERT_LE(take(ring, i) + wire::stride(length), usual_bytes);
  }
  EXPECT_GT(ring.in.consumed(), 100 * all_bytes) << "each lap counts as a whole one";
}

TEST(ARing, pieces_and_frames_behind_them_use_all_of_it) {
  for (const bool are_all_pieces : {true, false}) {
    RingPair ring(all_bytes, usual_bytes);
    const size_t length = ring.out.piece_length();
    size_t furthest = 0;
    for (uint32_t i = 0; i < 1000; ++i) {
      ASSERT_TRUE(i == 0 || are_all_pieces ? put_piece(ring, i, length) : ring.put(i, length));
      furthest = std::max(furthest, take(ring, i));
    }
    EXPECT_GT(furthest, all_bytes - 2 * wire::stride(length));
  }
}

TEST(ARing, a_piece_is_granted_from_any_place) {
  for (uint32_t before = 0; before < 300; ++before) {
    RingPair ring(all_bytes, usual_bytes);
    uint32_t number = 0;
    for (; number < before; ++number) {
      ASSERT_TRUE(ring.put(number, 8));
      (void)take(ring, number);
    }
    for (int i = 0; i < 3; ++i, ++number) {
      ASSERT_TRUE(put_piece(ring, number, ring.out.piece_length()));
      (void)take(ring, number);
    }
  }
}

TEST(ARing, it_takes_as_many_pieces_as_it_has_bytes_and_overwrites_none) {
  RingPair ring(all_bytes, usual_bytes);
  const size_t length = ring.out.piece_length();
  for (int i = 0; i < 3; ++i) {
    uint32_t sent = 0, received = 0;
    while (put_piece(ring, sent, length)) ++sent;
    EXPECT_GE(sent, all_bytes / wire::stride(length) - 2);
    while (take_frame(ring.in, received) == Took::frame) ++received;
    EXPECT_EQ(received, sent);
    ring.in.release();
  }
}

TEST(ARing, the_memory_that_pieces_used_goes_back_a_second_after_the_last_one) {
  constexpr size_t usual = size_t{256} << 10;
  RingPair ring(size_t{8} << 20, usual);
  const auto used = [&] {
    struct stat file{};
    EXPECT_EQ(::fstat(ring.memory.descriptor().get(), &file), 0);
    return static_cast<size_t>(file.st_blocks) * 512;
  };
  uint32_t number = 0;
  const auto pass_pieces = [&] {
    for (int i = 0; i < 100; ++i, ++number) {
      ASSERT_TRUE(put_piece(ring, number, ring.out.piece_length()));
      (void)take(ring, number);
    }
  };
  const auto pass_frames = [&] {
    for (int i = 0; i < 1000; ++i, ++number) {
      ASSERT_TRUE(ring.put(number, 1000));
      EXPECT_LT(take(ring, number), usual);
    }
  };
  constexpr uint64_t second_ns = 1'000'000'000;
  pass_frames();
  EXPECT_EQ(ring.out.trim(1), UINT64_MAX);
  const auto before = used();
  pass_pieces();
  EXPECT_GT(used(), 5 * usual);
  EXPECT_EQ(ring.out.trim(second_ns), 2 * second_ns) << "when to ask again";
  EXPECT_EQ(ring.out.trim(2 * second_ns - 1), 2 * second_ns);
  ASSERT_TRUE(put_piece(ring, number, 100));
  EXPECT_EQ(ring.out.trim(2 * second_ns), 3 * second_ns) << "there was another one";
  EXPECT_EQ(ring.out.trim(3 * second_ns), 4 * second_ns) << "which is unread";
  EXPECT_GT(used(), 5 * usual);
  (void)take(ring, number++);
  EXPECT_EQ(ring.out.trim(4 * second_ns), UINT64_MAX);
  EXPECT_LE(used(), before + 2 * 4096) << "but for the pages around the next frame";
  pass_frames();
  pass_pieces();
}

TEST(ARing, two_threads_pass_frames_and_pieces) {
  RingPair ring(all_bytes, usual_bytes);
  constexpr uint32_t frames = 100'000;
  std::atomic<bool> is_wrong = false;
  std::thread writer([&] {
    Random random(9);
    for (uint32_t i = 0; i < frames && !is_wrong; ++i) {
      const bool is_piece = random.below(10'000) < 5000;
      const size_t length = 1 + random.below(is_piece ? ring.out.piece_length() : random.below(8) == 0 ? 1000 : 48);
      while (!(is_piece ? put_piece(ring, i, length) : put_frame(ring.out, i, length)) && !is_wrong)
        std::this_thread::yield();
      if (random.below(1000) == 0) (void)ring.out.trim((i + 1) * uint64_t{1'000'000'000});
    }
    ring.out.flush();
  });
  for (uint32_t received = 0; received < frames && !is_wrong;) {
    switch (take_frame(ring.in, received)) {
      case Took::frame: ++received; break;
      case Took::wrong: is_wrong = true; break;
      case Took::nothing: ring.in.release(); std::this_thread::yield();
    }
  }
  EXPECT_FALSE(is_wrong);
  writer.join();
}

TEST(ARing, a_sleeping_reader_is_woken_once) {
  RingPair ring(4096);
  ASSERT_TRUE(ring.put(0, 8));
  EXPECT_EQ(ring.rings, 0);
  ring.in.set_sleeping(true);
  ASSERT_TRUE(ring.put(1, 8));
  ASSERT_TRUE(ring.put(2, 8));
  EXPECT_EQ(ring.rings, 1);
}

TEST(ARing, a_reader_with_a_false_position_harms_only_its_own_ring) {
  RingPair ring(4096);
  uint32_t sent = 0;
  while (ring.put(sent, 100)) ++sent;
  for (const uint64_t value : {uint64_t{0}, uint64_t{1} << 40, ~uint64_t{0}}) {
    ring.view.control->consumed = value;
    EXPECT_EQ(ring.out.reserve(100), nullptr) << value;
  }
}

}  // namespace
}  // namespace tc::transport
