// SPDX-License-Identifier: Apache-2.0
#include "memory/arena.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <random>

#include "memory/testing/process_memory.h"
#include "memory/testing/tiny_code.h"

namespace tc::memory {
namespace {

using testing::is_resident;
using testing::protection_of;
using testing::returns_1;

std::unique_ptr<Arena> shared_arena() { return std::move(*Arena::create(Arena::Kind::shared)); }

TEST(FreeRanges, what_is_given_back_joins_its_neighbours) {
  FreeRanges ranges(1024);
  const auto a = ranges.take(256, 64);
  const auto b = ranges.take(256, 64);
  const auto c = ranges.take(256, 64);
  EXPECT_EQ(a, 0u);
  EXPECT_EQ(b, 256u);
  EXPECT_EQ(c, 512u);
  ranges.give(*a, 256);
  ranges.give(*c, 256);
  EXPECT_EQ(ranges.pieces(), 2u);
  ranges.give(*b, 256);
  EXPECT_EQ(ranges.pieces(), 1u);
  EXPECT_EQ(ranges.take(1024, 64), 0u);
}

TEST(FreeRanges, an_alignment_is_kept_and_what_lies_before_stays_free) {
  FreeRanges ranges(16384);
  EXPECT_EQ(ranges.take(64, 64), 0u);
  EXPECT_EQ(ranges.take(64, 4096), 4096u);
  EXPECT_EQ(ranges.take(64, 64), 64u);
  EXPECT_EQ(ranges.take(8192, 4096), 8192u);
  EXPECT_EQ(ranges.take(8192, 64), std::nullopt);
}

TEST(FreeRanges, random_use_never_overlaps_and_leaves_one_piece) {
  FreeRanges ranges(1 << 20);
  std::vector<std::pair<size_t, size_t>> taken;
  std::vector<bool> used((1 << 20) / 64);
  std::mt19937 random(7);
  for (int i = 0; i < 20'000; ++i) {
    if (!taken.empty() && random() % 2 == 0) {
      std::swap(taken[random() % taken.size()], taken.back());
      const auto [at, size] = taken.back();
      taken.pop_back();
      for (size_t unit = at / 64; unit < (at + size) / 64; ++unit) used[unit] = false;
      ranges.give(at, size);
    } else {
      const size_t size = (1 + random() % 64) * 64;
      const size_t alignment = size_t{64} << random() % 7;
      const auto at = ranges.take(size, alignment);
      if (!at) continue;
      ASSERT_EQ(*at % alignment, 0u);
      for (size_t unit = *at / 64; unit < (*at + size) / 64; ++unit) {
        ASSERT_FALSE(used[unit]);
        used[unit] = true;
      }
      taken.emplace_back(*at, size);
    }
  }
  for (const auto& [at, size] : taken) ranges.give(at, size);
  EXPECT_EQ(ranges.pieces(), 1u);
}

// A system that does not let them share costs each image two mappings, and each load some system calls.
TEST(Arena, images_share_mappings_where_the_system_lets_them) {
#ifdef TC_EMULATED
  GTEST_SKIP() << "an emulator may not run code that is written at another address";
#endif
  if (!testing::system_runs_memfds()) GTEST_SKIP() << "this system forbids to execute memfds";
  EXPECT_EQ(shared_arena()->kind(), Arena::Kind::shared);
}

TEST(Arena, memory_is_never_writable_and_executable_at_one_address) {
#ifdef TC_EMULATED
  GTEST_SKIP() << "an emulator has protections of its own";
#endif
  for (const auto kind : {Arena::Kind::shared, Arena::Kind::separate}) {
    const auto arena = std::move(*Arena::create(kind));
    const bool is_shared = arena->kind() == Arena::Kind::shared;
    const auto p = *arena->place(100, 100, 64);
    EXPECT_EQ(protection_of(p.text), is_shared ? "r-x" : "rw-");
    ASSERT_TRUE(arena->seal(p));
    EXPECT_EQ(protection_of(p.text), "r-x");
    EXPECT_EQ(protection_of(p.writable), is_shared ? "rw-" : "r-x");
    EXPECT_EQ(protection_of(p.data), "rw-");
    arena->release(p);
  }
}

TEST(Arena, what_is_written_can_be_read_where_it_runs) {
  const auto arena = shared_arena();
  const auto p = *arena->place(100, 0, 1);
  std::memcpy(p.writable, "machine code", 12);
  EXPECT_EQ(std::memcmp(p.text, "machine code", 12), 0);
  EXPECT_EQ(p.text == p.writable, arena->kind() == Arena::Kind::separate);
  arena->release(p);
}

TEST(Arena, code_runs_once_it_is_sealed) {
  for (const auto kind : {Arena::Kind::shared, Arena::Kind::separate}) {
    const auto arena = std::move(*Arena::create(kind));
    const auto p = *arena->place(sizeof returns_1, 0, 64);
    std::memcpy(p.writable, returns_1, sizeof returns_1);
    ASSERT_TRUE(arena->seal(p));
    EXPECT_EQ(testing::call(p.text), 1);
    arena->release(p);
  }
}

TEST(Arena, memory_that_is_freed_and_used_in_turn_costs_no_calls_of_the_system) {
  const auto arena = shared_arena();
  if (arena->kind() != Arena::Kind::shared) GTEST_SKIP() << "images cannot share mappings on this system";
  const auto p = *arena->place(chunk_bytes, 0, 64);
  EXPECT_EQ(arena->committed_bytes(), chunk_bytes);
  arena->release(p);
  EXPECT_EQ(arena->committed_bytes(), chunk_bytes) << "one chunk stays";
  const auto two = *arena->place(2 * chunk_bytes, 0, 64);
  EXPECT_EQ(arena->committed_bytes(), 2 * chunk_bytes);
  arena->release(two);
  EXPECT_EQ(arena->committed_bytes(), chunk_bytes);
#ifndef TC_EMULATED
  const auto* const last = two.text + chunk_bytes;
  EXPECT_TRUE(protection_of(two.text) == "---" || protection_of(last) == "---") << "a stale call faults";
#endif
}

TEST(Arena, memory_is_prepared_before_it_runs_out) {
  const auto arena = shared_arena();
  if (arena->kind() != Arena::Kind::shared) GTEST_SKIP() << "images cannot share mappings on this system";
  ASSERT_TRUE(arena->place(64, 0, 64));
  arena->prepare();
  EXPECT_EQ(arena->committed_bytes(), chunk_bytes) << "most of the first chunk is free";
  ASSERT_TRUE(arena->place(chunk_bytes - 64, 0, 64));
  for (int i = 0; i < 3; ++i) arena->prepare();
  EXPECT_EQ(arena->committed_bytes(), 2 * chunk_bytes);
}

TEST(Arena, memory_is_prepared_again_and_again) {
  const auto arena = shared_arena();
  if (arena->kind() != Arena::Kind::shared) GTEST_SKIP() << "images cannot share mappings on this system";
  for (size_t full = 1; full < 8; ++full) {
    ASSERT_TRUE(arena->place(chunk_bytes, 0, 64));
    EXPECT_EQ(arena->committed_bytes(), full * chunk_bytes) << "it was there";
    for (int i = 0; i < 3; ++i) arena->prepare();
    EXPECT_EQ(arena->committed_bytes(), (full + 1) * chunk_bytes);
  }
}

// The lowest free place is where the next image will lie.
TEST(Arena, memory_is_prepared_where_the_next_image_fits) {
  const auto arena = shared_arena();
  if (arena->kind() != Arena::Kind::shared) GTEST_SKIP() << "images cannot share mappings on this system";
  const auto first = *arena->place(chunk_bytes, 0, 64);
  ASSERT_TRUE(arena->place(chunk_bytes, 0, 64));
  arena->prepare();
  arena->release(first);
  ASSERT_TRUE(arena->place(2 * chunk_bytes, 0, 64)) << "behind what is prepared";
  EXPECT_EQ(arena->committed_bytes(), 3 * chunk_bytes);
  arena->prepare();
  EXPECT_EQ(arena->committed_bytes(), 4 * chunk_bytes);
  EXPECT_EQ(arena->place(chunk_bytes, 0, 64)->text, first.text);
  EXPECT_EQ(arena->committed_bytes(), 4 * chunk_bytes) << "it was there";
}

// The data of the next image lies there.
TEST(Arena, data_pages_are_mapped_before_they_are_used) {
#ifdef TC_EMULATED
  GTEST_SKIP() << "an emulator maps pages as it likes";
#endif
  if (!populate(nullptr, 0)) GTEST_SKIP() << "this kernel maps nothing ahead";
  const auto arena = shared_arena();
  if (arena->kind() != Arena::Kind::shared) GTEST_SKIP() << "images cannot share mappings on this system";
  for (int i = 0; i < 100; ++i) {
    const auto p = *arena->place(100, 1000, 64);
    std::memset(p.data, 7, 1000);
    arena->prepare();
    EXPECT_EQ(p.data[999], std::byte{7}) << "its content stays";
    for (const size_t behind : {0, 1024, 4096}) EXPECT_TRUE(is_resident(p.data + 1000 + behind)) << i;
  }
}

TEST(Arena, data_pages_are_mapped_again_after_they_went_back_to_the_system) {
#ifdef TC_EMULATED
  GTEST_SKIP() << "an emulator maps pages as it likes";
#endif
  if (!populate(nullptr, 0)) GTEST_SKIP() << "this kernel maps nothing ahead";
  const auto arena = shared_arena();
  if (arena->kind() != Arena::Kind::shared) GTEST_SKIP() << "images cannot share mappings on this system";
  const auto first = *arena->place(chunk_bytes, 64, 64), second = *arena->place(64, 64, 64);
  arena->prepare();
  EXPECT_TRUE(is_resident(second.data + 64));
  arena->release(first);
  arena->release(second);
  EXPECT_FALSE(is_resident(second.data + 64));
  ASSERT_TRUE(arena->place(chunk_bytes, 64, 64));
  ASSERT_EQ(arena->place(64, 64, 64)->data, second.data);
  arena->prepare();
  EXPECT_TRUE(is_resident(second.data + 64));
}

TEST(Arena, images_without_data_cost_no_data_pages) {
#ifdef TC_EMULATED
  GTEST_SKIP() << "an emulator maps pages as it likes";
#endif
  const auto arena = shared_arena();
  if (arena->kind() != Arena::Kind::shared) GTEST_SKIP() << "images cannot share mappings on this system";
  for (int i = 0; i < 10; ++i) {
    const auto p = *arena->place(100, 0, 64);
    arena->prepare();
    EXPECT_FALSE(is_resident(p.data));
  }
}

TEST(Arena, a_placement_takes_whole_units_and_what_it_takes_is_counted) {
  const auto arena = shared_arena();
  if (arena->kind() != Arena::Kind::shared) GTEST_SKIP() << "images cannot share mappings on this system";
  struct {
    size_t text, data, alignment, taken;
  } const cases[] = {{1, 0, 1, 64},       {64, 0, 64, 64},     {65, 0, 1, 128},      {64, 64, 128, 128},
                     {10, 1000, 1, 1024}, {10, 0, 4096, 4096}, {4096, 0, 4096, 4096}};
  std::vector<Placement> placements;
  size_t used = 0;
  for (const auto& one : cases) {
    placements.push_back(*arena->place(one.text, one.data, one.alignment));
    EXPECT_EQ(placements.back().bytes, one.taken);
    EXPECT_EQ(placements.back().data_bytes, one.data);
    EXPECT_EQ(arena->used_bytes(), used += one.taken);
  }
  for (const auto& p : placements) arena->release(p);
  EXPECT_EQ(arena->used_bytes(), 0u);
}

TEST(Arena, an_image_with_mappings_of_its_own_takes_whole_pages) {
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const auto arena = std::move(*Arena::create(Arena::Kind::separate));
  EXPECT_EQ(arena->committed_bytes(), 0u);
  const auto one = *arena->place(1, 0, 64), two = *arena->place(2 * page, 100, 64);
  EXPECT_EQ(one.bytes, page);
  EXPECT_EQ(two.bytes, 2 * page);
  EXPECT_EQ(arena->used_bytes(), 3 * page);
  EXPECT_EQ(arena->committed_bytes(), 3 * page);
  arena->release(one);
  EXPECT_EQ(arena->used_bytes(), 2 * page);
  arena->release(two);
  EXPECT_EQ(arena->used_bytes(), 0u);
}

TEST(Arena, images_of_nothing_have_places_of_their_own) {
  for (const auto kind : {Arena::Kind::shared, Arena::Kind::separate}) {
    const auto arena = std::move(*Arena::create(kind));
    const auto one = arena->place(0, 0, 64), two = arena->place(0, 0, 64);
    ASSERT_TRUE(one) << one.error().message;
    ASSERT_TRUE(two) << two.error().message;
    EXPECT_NE(one->text, two->text);
    EXPECT_TRUE(arena->seal(*one));
    arena->release(*one);
    arena->release(*two);
    EXPECT_EQ(arena->used_bytes(), 0u);
  }
}

TEST(Arena, to_release_nothing_changes_nothing) {
  for (const auto kind : {Arena::Kind::shared, Arena::Kind::separate}) {
    const auto arena = std::move(*Arena::create(kind));
    const auto p = *arena->place(100, 0, 64);
    const size_t used = arena->used_bytes(), committed = arena->committed_bytes();
    arena->release({});
    EXPECT_EQ(arena->used_bytes(), used);
    EXPECT_EQ(arena->committed_bytes(), committed);
    arena->release(p);
  }
}

TEST(Arena, both_halves_of_every_placement_are_at_the_same_distance) {
  const auto arena = shared_arena();
  for (size_t i = 1; i < 100; ++i) {
    const auto p = *arena->place(i * 10, i * 20, 1);
    EXPECT_EQ(p.data - p.text, static_cast<ptrdiff_t>(image_half));
    EXPECT_GE(p.bytes, i * 20);
    std::memset(p.data, 1, i * 20);
  }
}

TEST(Arena, placements_are_aligned_as_asked) {
  const auto arena = shared_arena();
  for (const size_t alignment : {1, 64, 128, 4096, 64})
    EXPECT_EQ(reinterpret_cast<uintptr_t>(arena->place(10, 0, alignment)->text) % std::max<size_t>(alignment, 64), 0u);
}

TEST(Arena, thousands_of_placements_add_no_mappings) {
  const auto arena = shared_arena();
  if (arena->kind() != Arena::Kind::shared) GTEST_SKIP() << "images cannot share mappings on this system";
  const auto before = testing::process_memory();
  for (int i = 0; i < 10'000; ++i) ASSERT_TRUE(arena->place(200, i % 4 == 0 ? 64 : 0, 64));
  EXPECT_LE(testing::process_memory().mappings, before.mappings + 8);
}

TEST(Arena, freed_memory_returns_to_the_system) {
  const auto arena = shared_arena();
  if (arena->kind() != Arena::Kind::shared) GTEST_SKIP() << "images cannot share mappings on this system";
  const auto before = testing::process_memory();
  std::vector<Placement> placements;
  for (int i = 0; i < 32; ++i) {
    placements.push_back(*arena->place(1 << 20, 1 << 20, 64));
    std::memset(placements.back().writable, 0x90, 1 << 20);
    std::memset(placements.back().data, 1, 1 << 20);
  }
  EXPECT_GE(arena->committed_bytes(), 32u << 20);
  EXPECT_GT(testing::process_memory().resident_bytes, before.resident_bytes + (60u << 20));
  for (const auto& p : placements) arena->release(p);
  EXPECT_EQ(arena->used_bytes(), 0u);
  EXPECT_LE(arena->committed_bytes(), 2 * chunk_bytes);
  EXPECT_LE(testing::process_memory().resident_bytes, before.resident_bytes + testing::resident_slack);
}

// Asks the system about one page.
bool is_mapped(const std::byte* at) {
  unsigned char resident = 0;
  constexpr uintptr_t page = 4096;
  auto* const begin = reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(at) & ~(page - 1));
  return ::mincore(begin, page, &resident) == 0;
}

TEST(Arena, an_image_with_mappings_of_its_own_gives_back_both_halves) {
  const auto arena = std::move(*Arena::create(Arena::Kind::separate));
  for (const size_t data_bytes : {size_t{0}, size_t{100'000}}) {
    const auto p = *arena->place(100'000, data_bytes, 64);
    EXPECT_TRUE(is_mapped(p.text));
    if (data_bytes != 0) {
      EXPECT_TRUE(is_mapped(p.data));
      EXPECT_FALSE(is_mapped(p.text + p.bytes)) << "nothing uses the addresses between the halves";
    }
    arena->release(p);
    EXPECT_FALSE(is_mapped(p.text));
    if (data_bytes != 0) {
      EXPECT_FALSE(is_mapped(p.data));
    }
    EXPECT_EQ(arena->committed_bytes(), 0u);
  }
}

TEST(Arena, more_than_one_pair_of_halves_is_made_when_one_is_full) {
  const auto arena = shared_arena();
  std::vector<Placement> placements;
  for (int i = 0; i < 3; ++i) {
    auto p = arena->place(40u << 20, 0, 64);
    ASSERT_TRUE(p) << p.error().message;
    p->writable[(40u << 20) - 1] = std::byte{1};
    placements.push_back(*p);
  }
  for (const auto& p : placements) arena->release(p);
  EXPECT_EQ(arena->used_bytes(), 0u);
  if (arena->kind() == Arena::Kind::shared) {
    EXPECT_EQ(arena->committed_bytes(), chunk_bytes) << "one chunk stays";
  }
}

TEST(Arena, half_an_image_that_is_too_large_is_refused) {
  for (const auto kind : {Arena::Kind::shared, Arena::Kind::separate}) {
    const auto placed = (*Arena::create(kind))->place(image_half + 1, 0, 64);
    ASSERT_FALSE(placed);
    EXPECT_EQ(placed.error().code, TC_ERR_TOO_LARGE);
  }
}

TEST(Arena, the_largest_image_fits) {
  for (const auto kind : {Arena::Kind::shared, Arena::Kind::separate}) {
    const auto arena = std::move(*Arena::create(kind));
    const auto placed = arena->place(image_half, image_half, 64);
    ASSERT_TRUE(placed) << placed.error().message;
    placed->writable[image_half - 1] = std::byte{1};
    placed->data[image_half - 1] = std::byte{1};
    arena->release(*placed);
  }
}

TEST(Arena, a_process_with_an_empty_arena_stays_small) {
#ifdef TC_EMULATED
  GTEST_SKIP() << "the memory is the emulator's as well, which grows with the code that it translates";
#endif
  const auto before = testing::process_memory();
  const auto arena = shared_arena();
  EXPECT_LE(testing::process_memory().resident_bytes, before.resident_bytes + testing::resident_slack);
}

}  // namespace
}  // namespace tc::memory
