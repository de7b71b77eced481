// SPDX-License-Identifier: Apache-2.0
#include "ucp_ifunc/slot_frame.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>

#include "base/bytes.h"
#include "wire/frame.h"
#include "wire/testing/golden.h"

namespace tc::ucp::slot {
namespace {

using ::testing::HasSubstr;

Bytes pattern(size_t size) {
  Bytes bytes(size);
  for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(i * 7 + 3);
  return bytes;
}

// A frame as a source writes it, in a slot of its own size.
Bytes frame_of(size_t payload, size_t code, uint16_t flags) {
  Header header;
  header.payload_size = static_cast<uint32_t>(payload);
  header.length = static_cast<uint32_t>(code != 0 ? code_offset(payload) + code : header_bytes + payload);
  header.nonce = 4711;
  header.flags = static_cast<uint16_t>(flags | (code != 0 ? flag_code : 0));
  header.id = {0x1122334455667788, 0x99aabbccddeeff00};
  const auto body = pattern(header.length - header_bytes);
  if ((flags & flag_ordered) == 0) header.body_check = check_of(body);
  Bytes frame(header.length);
  const auto head = encode(header);
  std::memcpy(frame.data(), head.data(), head.size());
  if (!body.empty()) std::memcpy(frame.data() + header_bytes, body.data(), body.size());
  return frame;
}

Look look_at(const Bytes& slot) {
  Header header;
  return look(slot.data(), slot.size(), header);
}

TEST(SlotFrame, a_whole_frame_is_found_as_it_was_written) {
  for (const size_t payload : {0, 1, 15, 16, 17, 63, 64, 65, 4096})
    for (const size_t code : {0, 48, 1000})
      for (const uint16_t flags : {uint16_t{0}, flag_ordered}) {
        auto frame = frame_of(payload, code, flags);
        frame.resize(frame.size() + 100);
        Header header;
        ASSERT_EQ(look(frame.data(), frame.size(), header), Look::frame) << payload << " " << code << " " << flags;
        EXPECT_EQ(header.payload_size, payload);
        EXPECT_EQ(header.nonce, 4711u);
        EXPECT_EQ(header.id[1], 0x99aabbccddeeff00);
        if (code != 0) {
          EXPECT_EQ(code_of(header, frame.data() + header_bytes).size(), code);
        }
      }
}

TEST(SlotFrame, a_frame_that_is_stored_lies_there_to_the_last_byte_and_not_beyond) {
  for (const size_t payload : {0, 1, 4096, 65535, 65536, 65537, 200'001}) {
    const auto frame = frame_of(payload, 0, flag_ordered);
    HeaderBytes header;
    std::memcpy(header.data(), frame.data(), header.size());
    Bytes slot(frame.size() + 64, std::byte{17});
    store_ordered(slot.data(), header, ByteView(frame).subspan(header_bytes));
    EXPECT_TRUE(std::equal(frame.begin(), frame.end(), slot.begin())) << payload;
    EXPECT_TRUE(std::all_of(slot.end() - 64, slot.end(), [](std::byte b) { return b == std::byte{17}; })) << payload;
  }
}

TEST(SlotFrame, memory_with_any_fill_holds_no_frame) {
  for (int fill = 0; fill < 256; ++fill) {
    const Bytes slot(4096, static_cast<std::byte>(fill));
    EXPECT_EQ(look_at(slot), Look::nothing) << fill;
  }
}

TEST(SlotFrame, a_slot_without_room_for_a_header_holds_no_frame) {
  const auto frame = frame_of(16, 0, 0);
  for (size_t size = 0; size < header_bytes; ++size) {
    const Bytes slot(frame.begin(), frame.begin() + static_cast<ptrdiff_t>(size));
    EXPECT_EQ(look_at(slot), Look::nothing) << size;
  }
}

TEST(SlotFrame, a_frame_cut_off_at_any_byte_is_too_long_for_its_slot) {
  for (const size_t code : {0, 100}) {
    const auto frame = frame_of(33, code, 0);
    for (size_t size = header_bytes; size < frame.size(); ++size) {
      const Bytes slot(frame.begin(), frame.begin() + static_cast<ptrdiff_t>(size));
      EXPECT_EQ(look_at(slot), Look::too_long) << size;
    }
  }
}

TEST(SlotFrame, a_flipped_bit_anywhere_keeps_a_checked_frame_from_counting) {
  const auto frame = frame_of(40, 64, 0);
  for (size_t bit = 0; bit < frame.size() * 8; ++bit) {
    auto flipped = frame;
    flipped[bit / 8] ^= static_cast<std::byte>(1u << bit % 8);
    EXPECT_NE(look_at(flipped), Look::frame) << bit;
  }
}

TEST(SlotFrame, a_flipped_bit_in_its_header_keeps_an_ordered_frame_from_counting) {
  const auto frame = frame_of(40, 0, flag_ordered);
  for (size_t bit = 0; bit < header_bytes * 8; ++bit) {
    auto flipped = frame;
    flipped[bit / 8] ^= static_cast<std::byte>(1u << bit % 8);
    EXPECT_NE(look_at(flipped), Look::frame) << bit;
  }
}

// What the shared-memory transport was seen to do, and worse: the pieces of a put land in any order, over what was
// there before.
TEST(SlotFrame, a_frame_counts_only_when_all_of_its_pieces_have_landed_in_whatever_order) {
  constexpr size_t piece = 32;
  std::mt19937 random(1);
  const auto frame = frame_of(700, 0, 0);
  for (int round = 0; round < 200; ++round) {
    Bytes slot(frame.size(), static_cast<std::byte>(round));
    std::vector<size_t> order;
    for (size_t at = 0; at < frame.size(); at += piece) order.push_back(at);
    std::ranges::shuffle(order, random);
    for (const auto at : order) {
      EXPECT_NE(look_at(slot), Look::frame) << round;
      std::memcpy(slot.data() + at, frame.data() + at, std::min(piece, frame.size() - at));
    }
    EXPECT_EQ(look_at(slot), Look::frame) << round;
  }
}

TEST(SlotFrame, sizes_that_contradict_each_other_are_refused) {
  Header header{.length = header_bytes + 10, .payload_size = 11, .flags = flag_ordered};
  for (const auto wrong : {Header{.length = 58, .payload_size = 11, .flags = flag_ordered},
                           Header{.length = 10, .payload_size = 0, .flags = flag_ordered},
                           Header{.length = 64, .payload_size = 16, .flags = flag_ordered | flag_code},
                           Header{.length = 100, .payload_size = 0xffff'fff8, .flags = flag_ordered | flag_code},
                           Header{.length = 58, .payload_size = 10, .flags = 0x80}}) {
    Bytes slot(4096);
    const auto bytes = encode(wrong);
    std::memcpy(slot.data(), bytes.data(), bytes.size());
    ASSERT_EQ(look(slot.data(), slot.size(), header), Look::malformed);
    EXPECT_THAT(describe(Look::malformed, header, slot.size()), HasSubstr(std::to_string(wrong.payload_size)));
  }
}

TEST(SlotFrame, an_address_of_any_alignment_will_do) {
  const auto frame = frame_of(20, 0, 0);
  for (size_t shift = 0; shift < 16; ++shift) {
    Bytes slot(frame.size() + 16);
    std::memcpy(slot.data() + shift, frame.data(), frame.size());
    Header header;
    ASSERT_EQ(look(slot.data() + shift, frame.size(), header), Look::frame) << shift;
    clear(slot.data() + shift);
    ASSERT_EQ(look(slot.data() + shift, frame.size(), header), Look::nothing) << shift;
  }
}

TEST(SlotFrame, the_check_tells_lengths_and_places_apart) {
  const Bytes zeroes(200);
  std::vector<uint64_t> seen;
  for (size_t size = 0; size <= zeroes.size(); ++size) seen.push_back(check_of(ByteView(zeroes).first(size)));
  for (size_t at = 0; at < zeroes.size(); ++at) {
    auto one = zeroes;
    one[at] = std::byte{1};
    seen.push_back(check_of(one));
  }
  std::ranges::sort(seen);
  EXPECT_EQ(std::ranges::adjacent_find(seen), seen.end());
}

// The three shapes of a frame of the papers' API: stored in order, put, and put with its code.
TEST(SlotFrame, golden_frames) {
  const auto frame = [](Header header, ByteView body) {
    header.length = static_cast<uint32_t>(header_bytes + body.size());
    header.id = short_id(ContentId::of(as_bytes("a manifest")));
    if ((header.flags & flag_ordered) == 0) header.body_check = check_of(body);
    const auto head = encode(header);
    Bytes bytes(head.begin(), head.end());
    bytes.insert(bytes.end(), body.begin(), body.end());
    return bytes;
  };
  const auto payload = as_bytes("payload");
  tc::testing::expect_golden("slot/ordered.bin", frame({.payload_size = 7, .flags = flag_ordered}, payload));
  tc::testing::expect_golden("slot/checked.bin", frame({.payload_size = 7, .nonce = 42}, payload));
  Bytes body(payload.begin(), payload.end());
  Writer(body).align(alignment);
  wire::append_code(body, {ContentId::of(as_bytes("a manifest")), 3, 8}, as_bytes("a bundle"));
  tc::testing::expect_golden("slot/with_code.bin", frame({.payload_size = 7, .nonce = 43, .flags = flag_code}, body));
}

}  // namespace
}  // namespace tc::ucp::slot
