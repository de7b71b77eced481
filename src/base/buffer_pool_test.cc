// SPDX-License-Identifier: Apache-2.0
#include "base/buffer_pool.h"

#include <gtest/gtest.h>

#include <cstring>

#include "base/clock.h"

namespace tc {
namespace {

constexpr size_t kib = 1024, mib = 1024 * kib;
constexpr uint64_t second_ns = 1'000'000'000;

// Fresh memory of the system is zero.
void mark(const PooledBuffer& buffer) { std::memset(buffer.data(), 0x5a, buffer.size()); }
bool is_marked(const PooledBuffer& buffer) { return buffer.data()[buffer.size() - 1] == std::byte{0x5a}; }

TEST(BufferPool, memory_is_aligned_to_pages_and_can_be_used_to_its_end) {
  const auto pool = BufferPool::create(64 * mib);
  for (const size_t size : {size_t{0}, size_t{1}, 64 * kib, 64 * kib + 1, 2 * mib, 3 * mib + 5}) {
    auto buffer = pool->take(size);
    ASSERT_TRUE(buffer) << buffer.error().message;
    ASSERT_TRUE(*buffer);
    EXPECT_EQ(buffer->size(), size);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer->data()) % 4096, 0u);
    mark(*buffer);
  }
}

TEST(BufferPool, memory_that_was_used_is_used_again_for_what_fits_it) {
  const auto pool = BufferPool::create(64 * mib);
  for (const size_t size : {256 * kib, mib}) {
    auto buffer = pool->take(size);
    ASSERT_TRUE(buffer);
    mark(*buffer);
  }
  EXPECT_FALSE(is_marked(*pool->take(2 * mib))) << "neither is large enough";
  EXPECT_FALSE(is_marked(*pool->take(64 * kib))) << "most of either would be wasted";
  auto again = pool->take(200 * kib);
  ASSERT_TRUE(again);
  EXPECT_TRUE(is_marked(*again));
  EXPECT_EQ(pool->budget().used(), 256 * kib) << "the smaller one";
}

TEST(BufferPool, memory_in_use_counts_in_steps_until_it_is_returned) {
  const auto pool = BufferPool::create(64 * mib);
  {
    auto small = pool->take(1), large = pool->take(64 * kib + 1), huge = pool->take(2 * mib + 1);
    EXPECT_EQ(pool->budget().used(), 64 * kib + 128 * kib + 4 * mib);
  }
  EXPECT_EQ(pool->budget().used(), 0u);
}

TEST(BufferPool, more_than_the_limit_is_refused_with_both_numbers) {
  const auto pool = BufferPool::create(128 * kib);
  auto first = pool->take(100 * kib);
  ASSERT_TRUE(first);
  const auto second = pool->take(1);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, TC_ERR_LIMIT);
  EXPECT_NE(second.error().message.find("131072 bytes are in use"), std::string::npos) << second.error().message;
  EXPECT_EQ(pool->budget().used(), 128 * kib);
  *first = PooledBuffer();
  first = fail(TC_ERR_LIMIT, "returned");
  EXPECT_TRUE(pool->take(1));
}

TEST(BufferPool, what_is_handed_over_does_not_count_any_more) {
  const auto pool = BufferPool::create(64 * kib);
  auto mine = pool->take(10);
  ASSERT_TRUE(mine);
  mine->hand_over();
  EXPECT_EQ(pool->budget().used(), 0u);
  EXPECT_TRUE(pool->take(10));
}

TEST(BufferPool, memory_that_was_unused_for_a_second_goes_back_to_the_system) {
  const auto pool = BufferPool::create(64 * mib);
  mark(*pool->take(256 * kib));
  pool->trim(now_ns());
  {
    auto kept = pool->take(256 * kib);
    ASSERT_TRUE(is_marked(*kept));
  }
  pool->trim(now_ns() + 2 * second_ns);
  EXPECT_FALSE(is_marked(*pool->take(256 * kib)));
}

}  // namespace
}  // namespace tc
