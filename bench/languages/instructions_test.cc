// SPDX-License-Identifier: Apache-2.0
#include "languages/instructions.h"

#include <gtest/gtest.h>

namespace tc::bench {
namespace {

// A loop of `rounds` that no compiler shortens, three instructions a round on x86-64 at least.
[[gnu::noinline]] void spin(uint64_t rounds) {
  volatile uint64_t round = 0;
  while (round < rounds) round = round + 1;
}

// ThreadSanitizer puts work of its own into signal handlers and calls.
#if defined(__SANITIZE_THREAD__)
constexpr bool watched = true;
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
constexpr bool watched = true;
#else
constexpr bool watched = false;
#endif
#else
constexpr bool watched = false;
#endif

TEST(Instructions, AreCountedExactlyAndTheSameEveryTime) {
  if (watched) GTEST_SKIP() << "instructions are not counted under ThreadSanitizer";
  const auto ten = count_instructions([] { spin(10); });
  if (!ten) GTEST_SKIP() << "instructions are counted on x86-64 only";
  const auto twenty = count_instructions([] { spin(20); });
  EXPECT_GE(*twenty, *ten + 30);
  EXPECT_LE(*twenty, *ten + 100);
  EXPECT_EQ(*count_instructions([] { spin(30); }) - *twenty, *twenty - *ten);
  EXPECT_EQ(count_instructions([] { spin(10); }), ten);
}

}  // namespace
}  // namespace tc::bench
