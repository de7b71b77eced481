// SPDX-License-Identifier: Apache-2.0
#include "base/bytes.h"

#include <gtest/gtest.h>

namespace tc {
namespace {

TEST(Bytes, what_a_writer_wrote_a_reader_reads) {
  Bytes out;
  Writer(out).u8(1).u16(0x0203).u32(0x04050607).u64(0x08090a0b0c0d0e0f).str8("ifunc").str16("node");
  Reader in(out);
  EXPECT_EQ(in.u8(), 1);
  EXPECT_EQ(in.u16(), 0x0203);
  EXPECT_EQ(in.u32(), 0x04050607u);
  EXPECT_EQ(in.u64(), 0x08090a0b0c0d0e0fu);
  EXPECT_EQ(in.str8(), "ifunc");
  EXPECT_EQ(in.str16(), "node");
  EXPECT_TRUE(in.finish_exactly("test"));
}

TEST(Bytes, numbers_are_little_endian_on_the_wire) {
  Bytes out;
  Writer(out).u32(0x01020304);
  EXPECT_EQ(std::to_integer<int>(out[0]), 4);
  EXPECT_EQ(std::to_integer<int>(out[3]), 1);
}

TEST(Bytes, a_read_past_the_end_yields_zero_and_fails_for_good) {
  const Bytes three(3, std::byte{0xff});
  Reader in(three);
  EXPECT_EQ(in.u32(), 0u);
  EXPECT_EQ(in.u8(), 0u) << "a reader that failed reads nothing more";
  const auto verdict = in.finish("header");
  ASSERT_FALSE(verdict);
  EXPECT_EQ(verdict.error().code, TC_ERR_MALFORMED);
  EXPECT_EQ(verdict.error().message, "header: 4 bytes wanted at byte 0 when only 3 are left");
}

TEST(Bytes, a_string_whose_length_lies_is_refused) {
  Bytes out;
  Writer(out).u8(200).u8('x');
  Reader in(out);
  EXPECT_EQ(in.str8(), "");
  EXPECT_FALSE(in.ok());
}

TEST(Bytes, bytes_left_over_are_an_error_where_the_end_must_be_exact) {
  const Bytes two(2);
  Reader in(two);
  in.u8();
  EXPECT_TRUE(in.finish("x"));
  ASSERT_FALSE(in.finish_exactly("x"));
  EXPECT_EQ(in.finish_exactly("x").error().message, "x: 2 bytes long when its content ends at byte 1");
}

TEST(Bytes, a_refused_value_is_an_error_at_its_place) {
  const Bytes two(2);
  Reader in(two);
  in.u8();
  in.refuse();
  ASSERT_FALSE(in.finish("kind"));
  EXPECT_EQ(in.finish("kind").error().message, "kind: value before byte 1 is not allowed there");
}

TEST(Bytes, alignment_pads_with_zeroes) {
  Bytes out;
  Writer(out).u8(9).align(8).u8(7);
  ASSERT_EQ(out.size(), 9u);
  EXPECT_EQ(std::to_integer<int>(out[5]), 0);
}

TEST(AlignedCopy, lies_at_a_multiple_of_any_alignment_and_is_equal) {
  Bytes memory;
  const Bytes bytes{std::byte{1}, std::byte{2}, std::byte{3}};
  for (size_t alignment = 1; alignment <= 4096; alignment *= 2) {
    const auto* const copy = aligned_copy(memory, bytes, alignment);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(copy) % alignment, 0u);
    EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), copy));
    EXPECT_LE(copy + bytes.size(), memory.data() + memory.size());
  }
  EXPECT_NE(aligned_copy(memory, {}, 64), nullptr);
}

}  // namespace
}  // namespace tc
