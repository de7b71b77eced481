// SPDX-License-Identifier: Apache-2.0
#include "base/random.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

namespace tc {
namespace {

TEST(Random, numbers_do_not_repeat) {
  std::set<uint64_t> seen;
  for (int i = 0; i < 1000; ++i) seen.insert(random_number());
  EXPECT_EQ(seen.size(), 1000u);
}

// The system may give fewer than were asked for, from 257 on.
TEST(Random, long_stretches_are_filled_to_their_end) {
  std::vector<std::byte> bytes(64 * 1024);
  random_bytes(bytes);
  for (size_t at = 0; at < bytes.size(); at += 256)
    EXPECT_FALSE(std::all_of(&bytes[at], &bytes[at] + 256, [](std::byte byte) { return byte == std::byte{0}; })) << at;
}

}  // namespace
}  // namespace tc
