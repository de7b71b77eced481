// SPDX-License-Identifier: Apache-2.0
//
// Compressed slices that lie about their size, or are not compressed at all.
#include <gtest/gtest.h>

#include "wire/testing/bundles.h"
#include "wire/testing/raw_bundle.h"

namespace tc {
namespace {

using testing::bytes_of;
using testing::file_of;
using testing::RawSlice;

// A bundle with one compressed slice whose manifest claims `claimed` bytes unpacked.
Result<Bytes> unpack_claiming(const Bytes& stored, uint32_t claimed) {
  RawSlice slice{.packing = 1, .stored_size = static_cast<uint32_t>(stored.size()), .unpacked_size = claimed};
  slice.hash = ContentId::of(stored);
  const auto read = Bundle::read(file_of({.slices = {slice}}, as_text(stored)));
  if (!read) return fail(read.error());
  return read->unpack(0);
}

TEST(HostileBundle, a_decompression_bomb_is_refused_before_memory_is_taken) {
  const auto bomb = compress(Bytes(8 * 1024 * 1024)).value();
  ASSERT_LT(bomb.size(), 4096u);
  EXPECT_TRUE(unpack_claiming(bomb, 8 * 1024 * 1024));
  const auto small = unpack_claiming(bomb, 100);
  ASSERT_FALSE(small);
  EXPECT_EQ(small.error().message, "compressed slice says it holds 8388608 bytes when its manifest says 100");
  EXPECT_EQ(
      decompress(compress(Bytes(BundleLimits::slice_bytes + 1)).value(), BundleLimits::slice_bytes + 1).error().code,
      TC_ERR_TOO_LARGE);
}

TEST(HostileBundle, a_compressed_slice_that_lies_about_its_size_is_refused) {
  auto frame = testing::zstd_frame_of("forty bytes, or so it says");
  const auto size = static_cast<uint32_t>(std::to_integer<int>(frame[5]));
  EXPECT_TRUE(unpack_claiming(frame, size));
  frame[5] = static_cast<std::byte>(size + 1);  // the frame header says one more than its block holds
  EXPECT_FALSE(unpack_claiming(frame, size + 1));
  frame[5] = static_cast<std::byte>(size - 1);
  EXPECT_FALSE(unpack_claiming(frame, size - 1));
}

TEST(HostileBundle, two_compressed_frames_in_a_row_do_not_overflow) {
  auto twice = testing::zstd_frame_of("once");
  twice.insert(twice.end(), twice.begin(), twice.end());
  EXPECT_FALSE(unpack_claiming(twice, 4));
}

TEST(HostileBundle, a_slice_that_is_not_zstd_does_not_unpack) {
  const auto unpacked = unpack_claiming(bytes_of("code"), 4);
  ASSERT_FALSE(unpacked);
  EXPECT_EQ(unpacked.error().message, "compressed slice of 4 bytes does not say how many it unpacks to");
}

}  // namespace
}  // namespace tc
