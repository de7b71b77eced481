// SPDX-License-Identifier: Apache-2.0
//
// A test may own the clock and the randomness: it defines them in place of base/clock.cc and base/random.cc.
#include <gtest/gtest.h>

#include <algorithm>

#include "base/clock.h"
#include "base/file.h"
#include "base/random.h"

namespace {
uint64_t time_ns = 1000;
}

namespace tc {

uint64_t now_ns() noexcept { return time_ns; }
int64_t wall_clock_s() noexcept { return 12; }
void random_bytes(std::span<std::byte> bytes) noexcept { std::ranges::fill(bytes, std::byte{7}); }

namespace {

TEST(OwnedClock, a_deadline_passes_at_its_nanosecond_and_not_before) {
  const auto deadline = Deadline::after_ms(2);
  time_ns += 1'999'999;
  EXPECT_FALSE(deadline.passed());
  EXPECT_EQ(deadline.remaining_ns(), 1u);
  time_ns += 1;
  EXPECT_TRUE(deadline.passed());
  EXPECT_EQ(deadline.remaining_ns(), 0u);
  time_ns += 5;
  EXPECT_EQ(deadline.remaining_ns(), 0u) << "it went below zero";
}

TEST(OwnedClock, a_deadline_of_no_time_has_passed_and_one_that_never_comes_has_not) {
  EXPECT_TRUE(Deadline::after_ms(0).passed());
  EXPECT_FALSE(Deadline::never().passed());
}

TEST(OwnedRandomness, numbers_come_from_the_tests_own_source) { EXPECT_EQ(random_number(), 0x0707070707070707u); }

// Even somebody who knows the name cannot make us write through a link.
TEST(OwnedRandomness, a_new_file_is_none_that_lies_there_already) {
  const auto directory = TemporaryDirectory::create();
  ASSERT_TRUE(directory);
  const auto path = directory->file("text");
  std::filesystem::create_symlink(directory->file("victim"), path + ".0707070707070707.new");
  const auto written = write_file_atomically(path, as_bytes("text"));
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().message, "cannot create a file beside " + path + ": File exists");
  EXPECT_FALSE(std::filesystem::exists(directory->file("victim")));
}

}  // namespace
}  // namespace tc
