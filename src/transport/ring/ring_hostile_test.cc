// SPDX-License-Identifier: Apache-2.0
//
// A ring under a hostile other side, which may write anything anywhere in it at any time.
#include <gtest/gtest.h>

#include <thread>

#include "base/clock.h"
#include "transport/testing/ring_pair.h"

namespace tc::transport {
namespace {

using wire::Kind;

constexpr size_t ring_bytes = 4096;

TEST(AHostileRing, a_pad_to_anywhere_but_the_next_lap_is_broken) {
  for (const uint32_t length : {0u, 8u, 4064u, 4072u, 4096u, 4104u, 0xffffffffu}) {
    RingPair ring(ring_bytes);
    store_header(ring.view.data + 8, wire::encode(Kind::pad, 0, 0, length));
    EXPECT_FALSE(ring.in.refill()) << length;
    EXPECT_TRUE(ring.in.broken()) << length;
    EXPECT_EQ(ring.in.consumed(), 0u);
    ring.in.release();
  }
  RingPair ring(ring_bytes);
  store_header(ring.view.data + 8, wire::encode(Kind::pad, 0, 0, 4088));
  EXPECT_TRUE(ring.in.refill());
  EXPECT_FALSE(ring.in.broken());
}

TEST(AHostileRing, a_frame_that_leads_past_the_end_is_broken) {
  for (const uint32_t length : {4080u, 4096u, 1u << 20, 0xffffffffu}) {
    RingPair ring(ring_bytes);
    EXPECT_FALSE(ring.in.fits(length));
    store_header(ring.view.data + 8, wire::encode(Kind::call, 0, 0, length));
    EXPECT_FALSE(ring.in.refill());
    EXPECT_TRUE(ring.in.broken()) << length;
  }
  RingPair ring(ring_bytes);
  EXPECT_TRUE(ring.in.fits(4072));
}

// Every bit of a header, at every place of the ring.
TEST(AHostileRing, a_header_with_any_bit_flipped_leads_the_reader_nowhere_outside) {
  for (size_t place = 8; place < ring_bytes; place += 16)
    for (unsigned bit = 0; bit < 64; ++bit) {
      RingPair ring(ring_bytes);
      for (size_t at = 8; at < place; at += 16) store_header(ring.view.data + at, call_header(0, 8));
      store_header(ring.view.data + place, call_header(1, 8) ^ uint64_t{1} << bit);
      const size_t frames = take_anything(ring.in);
      EXPECT_GE(frames, (place - 8) / 16);
      ASSERT_GE(ring.in.at(), ring.view.data + 8) << place << " bit " << bit;
      ASSERT_LE(ring.in.at(), ring.view.last_place()) << place << " bit " << bit;
    }
}

TEST(AHostileRing, a_pad_with_any_bit_of_its_length_flipped_is_broken) {
  for (unsigned bit = 32; bit < 64; ++bit) {
    RingPair ring(ring_bytes);
    store_header(ring.view.data + 8, wire::encode(Kind::pad, 0, 0, 4088) ^ uint64_t{1} << bit);
    if (wire::stride(wire::decode(ring.in.peek()).length) == wire::stride(4088)) continue;  // of the same stride
    EXPECT_FALSE(ring.in.refill());
    EXPECT_TRUE(ring.in.broken()) << bit;
  }
}

TEST(AHostileRing, a_pad_in_a_circle_does_not_keep_the_reader_for_ever) {
  RingPair ring(ring_bytes);
  store_header(ring.view.data + 8, wire::encode(Kind::pad, 0, 0, 4088));
  for (int lap = 0; lap < 1000; ++lap) {
    ASSERT_TRUE(ring.in.refill()) << "one lap with each call, so that the caller can stop";
    ring.in.release();
  }
  EXPECT_EQ(ring.in.consumed(), 1000u * ring_bytes);
}

TEST(AHostileRing, a_reader_with_a_false_position_harms_only_its_own_ring) {
  RingPair ring(ring_bytes);
  uint32_t sent = 0;
  while (ring.put(sent, 100)) ++sent;
  for (const uint64_t value : {uint64_t{0}, uint64_t{7}, uint64_t{1} << 40, ~uint64_t{0}}) {
    ring.view.control->consumed = value;
    EXPECT_EQ(ring.out.reserve(100), nullptr) << value;
  }
  // An odd position inside what was written is believed: frames then overwrite what that reader has not read.
  ring.view.control->consumed = ring_start + 1001;
  for (int i = 0; i < 1000; ++i)
    if (std::byte* const at = ring.out.reserve(100)) {
      ASSERT_EQ(reinterpret_cast<uintptr_t>(at) % 16, 8u);
      ASSERT_GE(at, ring.view.data);
      ASSERT_LE(at + wire::stride(100), ring.view.data + ring_bytes);
      ASSERT_TRUE(ring.put(sent++, 100));
    }
}

TEST(AHostileRing, a_sleep_flag_with_any_value_rings_and_is_cleared) {
  RingPair ring(ring_bytes);
  for (const uint32_t value : {1u, 2u, 0x80000000u, 0xffffffffu}) {
    ring.view.control->sleeping = value;
    const int before = ring.rings;
    ASSERT_TRUE(ring.put(0, 8));
    EXPECT_EQ(ring.rings, before + 1) << value;
    EXPECT_EQ(ring.view.control->sleeping, 0u);
  }
}

// What a peer may do with the memory in spite of its seals: punch a hole, whose bytes read as zero.
TEST(AHostileRing, a_ring_that_becomes_zero_is_an_empty_one) {
  RingPair ring(ring_bytes);
  ASSERT_TRUE(ring.put(0, 8));
  std::memset(static_cast<void*>(ring.view.control), 0, ring_memory_bytes(ring_bytes));
  EXPECT_EQ(take_frame(ring.in, 0), Took::nothing);
  ring.in.release();
  for (uint32_t i = 0; i < 1000; ++i) (void)ring.put(i, 100);
  EXPECT_FALSE(ring.in.broken());
}

// A peer that writes noise while we read: whatever it does, the reader stays inside.
TEST(AHostileRing, noise_never_leads_the_reader_outside) {
  for (uint64_t seed = 0; seed < 5; ++seed) {
    RingPair ring(ring_bytes);
    std::atomic<bool> stop = false;
    std::thread noise([&] {
      Random random(seed + 1);
      constexpr uint8_t kinds[] = {0, 1, 1, 1, 11, 9};
      while (!stop) {
        const size_t offset = 8 + 16 * random.below(ring_bytes / 16);
        const auto kind = static_cast<Kind>(kinds[random.below(6)]);
        const auto length = static_cast<uint32_t>(random.below(10) == 0 ? random.next() : random.below(128));
        const auto to_lap = static_cast<uint32_t>(ring_bytes - offset);
        store_header(ring.view.data + offset, wire::encode(kind, 0, 0, kind == Kind::pad ? to_lap : length));
      }
    });
    constexpr size_t enough = 10'000;
    size_t frames = 0;
    for (const auto deadline = Deadline::after_ms(10'000); frames < enough && !deadline.passed();) {
      RingIn in;
      in.open(ring.view);
      for (int i = 0; i < 2000 && !in.broken(); ++i) {
        ASSERT_GE(in.at(), ring.view.data + 8);
        ASSERT_LE(in.at(), ring.view.last_place());
        const uint64_t word = in.peek();
        const auto header = wire::decode(word);
        if (word == 0 || header.kind == Kind::pad || !in.fits(header.length)) {
          (void)in.refill();
          continue;
        }
        ASSERT_LE(in.body() + header.length, ring.view.data + ring_bytes);
        in.advance(header.length);
        in.release();
        ++frames;
      }
    }
    stop = true;
    noise.join();
    EXPECT_GE(frames, enough);
  }
}

}  // namespace
}  // namespace tc::transport
