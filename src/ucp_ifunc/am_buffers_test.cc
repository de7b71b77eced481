// SPDX-License-Identifier: Apache-2.0
#include "ucp_ifunc/am_buffers.h"

#include <gtest/gtest.h>

namespace tc::ucp {

namespace {

TEST(AmBuffers, what_was_given_back_is_used_again_by_the_smallest_that_has_room) {
  AmBuffers buffers;
  auto small = buffers.take(1000), large = buffers.take(100'000);
  auto* const small_memory = small.memory.get();
  auto* const large_memory = large.memory.get();
  buffers.give_back(std::move(large));
  buffers.give_back(std::move(small));
  auto first = buffers.take(900), second = buffers.take(900), third = buffers.take(900);
  EXPECT_EQ(first.memory.get(), small_memory);
  EXPECT_EQ(second.memory.get(), large_memory);
  EXPECT_EQ(second.size, 100'000u) << "it keeps its size";
  EXPECT_NE(third.memory, nullptr);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(third.memory.get()) % 64, 0u);
}

TEST(AmBuffers, no_more_is_kept_than_the_budget_and_larger_ones_take_the_smaller_ones_place) {
  AmBuffers buffers;
  const size_t half = AmBuffers::most_kept / 2;
  auto one = buffers.take(half - 1), two = buffers.take(half), three = buffers.take(half + 1),
       huge = buffers.take(AmBuffers::most_kept + 1);
  auto* const largest = three.memory.get();
  buffers.give_back(std::move(one));
  buffers.give_back(std::move(two));
  buffers.give_back(std::move(three));  // the first one goes, and the second: there is no room for both
  buffers.give_back(std::move(huge));   // never kept
  EXPECT_EQ(buffers.bytes_kept(), half + 1);
  EXPECT_EQ(buffers.take(half).memory.get(), largest);
  EXPECT_EQ(buffers.bytes_kept(), 0u);
}

}  // namespace

}  // namespace tc::ucp
