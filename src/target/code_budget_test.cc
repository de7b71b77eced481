// SPDX-License-Identifier: Apache-2.0
//
// How much memory a code store takes: its budget, eviction, and pages that are mapped ahead.
#include <gmock/gmock.h>
#include <sys/resource.h>

#include "memory/arena.h"
#include "memory/code_mapping.h"
#include "memory/testing/process_memory.h"
#include "target/testing/code_store_test_base.h"

namespace tc::target {
namespace {

using testing::bundle_with;
using testing::counting_object;
using ::testing::HasSubstr;

TEST_F(CodeStoreTest, the_code_used_longest_ago_is_evicted_and_said_so_before) {
  CodeStoreOptions options;
  auto& codes = store(options);
  const size_t each = (*codes.load(numbered(0)))->bytes;
  options.budget_bytes = 3 * each + each / 2;
  auto& small = store(options);
  Code* const a = *small.load(numbered(1));
  Code* const b = *small.load(numbered(2));
  Code* const c = *small.load(numbered(3));
  a->last_used = 30;
  b->last_used = 10;
  c->last_used = 20;
  ASSERT_TRUE(small.load(numbered(4)));
  EXPECT_THAT(evicted_, ::testing::ElementsAre("ifunc2"));
  ASSERT_TRUE(small.load(numbered(5)));
  EXPECT_THAT(evicted_, ::testing::ElementsAre("ifunc2", "ifunc3"));
  EXPECT_EQ(small.find(a->id()), a);
  EXPECT_EQ(small.stats().evictions, 2u);
  EXPECT_LE(small.stats().bytes, options.budget_bytes);
}

TEST_F(CodeStoreTest, running_code_is_not_evicted) {
  CodeStoreOptions options;
  const size_t each = (*store(options).load(numbered(0)))->bytes;
  options.budget_bytes = each + each / 2;
  auto& small = store(options);
  Code* const running = *small.load(numbered(1));
  running->pinned = true;
  const auto refused = small.load(numbered(2));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, TC_ERR_LIMIT);
  EXPECT_THAT(refused.error().message, HasSubstr("code-budget"));
  EXPECT_TRUE(evicted_.empty());
  running->pinned = false;
  EXPECT_TRUE(small.load(numbered(2)));
}

TEST_F(CodeStoreTest, code_larger_than_the_budget_evicts_nothing) {
  if ((*memory::Arena::create(memory::Arena::Kind::shared))->kind() != memory::Arena::Kind::shared)
    GTEST_SKIP() << "images cannot share mappings on this system, and take whole pages";
  CodeStoreOptions options;
  options.budget_bytes = 8192;
  auto& small = store(options);
  ASSERT_TRUE(small.load(numbered(1)));
  auto object = counting_object();
  object.bss = 100'000;
  const auto refused = small.load(bundle_with("huge", object.build()));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, TC_ERR_LIMIT);
  EXPECT_TRUE(evicted_.empty());
}

TEST_F(CodeStoreTest, code_that_fills_the_budget_to_the_last_byte_is_kept) {
  CodeStoreOptions options;
  const size_t each = (*store(options).load(numbered(0)))->bytes;
  options.budget_bytes = each;
  ASSERT_TRUE(store(options).load(numbered(1)));
  options.budget_bytes = 2 * each;
  auto& two = store(options);
  ASSERT_TRUE(two.load(numbered(1)));
  ASSERT_TRUE(two.load(numbered(2)));
  EXPECT_EQ(two.stats().bytes, options.budget_bytes);
  EXPECT_TRUE(evicted_.empty());
  options.budget_bytes = each - 1;
  const auto refused = store(options).load(numbered(1));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, TC_ERR_LIMIT);
}

TEST_F(CodeStoreTest, code_that_fills_the_whole_budget_takes_the_place_of_all_that_is_there) {
  CodeStoreOptions options;
  const size_t each = (*store(options).load(numbered(0)))->bytes;
  options.budget_bytes = each;
  auto& one = store(options);
  for (const uint64_t i : {1u, 2u, 3u}) {
    const auto loaded = one.load(numbered(i));
    ASSERT_TRUE(loaded) << loaded.error().message;
  }
  EXPECT_THAT(evicted_, ::testing::ElementsAre("ifunc1", "ifunc2"));
  EXPECT_EQ(one.stats().bytes, each);
}

TEST_F(CodeStoreTest, one_byte_above_the_budget_costs_the_code_used_longest_ago_alone) {
  CodeStoreOptions options;
  const size_t each = (*store(options).load(numbered(0)))->bytes;
  options.budget_bytes = 3 * each - 1;
  auto& codes = store(options);
  Code* const a = *codes.load(numbered(1));
  Code* const b = *codes.load(numbered(2));
  a->last_used = 20;
  b->last_used = 10;
  EXPECT_TRUE(evicted_.empty());
  ASSERT_TRUE(codes.load(numbered(3)));
  EXPECT_THAT(evicted_, ::testing::ElementsAre("ifunc2"));
  EXPECT_EQ(codes.stats().bytes, 2 * each);
}

TEST_F(CodeStoreTest, evicting_by_id_frees_the_code) {
  auto& codes = store();
  Code* const code = *codes.load(numbered(1));
  const auto id = code->id();
  codes.evict(id);
  EXPECT_EQ(codes.find(id), nullptr);
  EXPECT_EQ(codes.stats().bytes, 0u);
  EXPECT_THAT(evicted_, ::testing::ElementsAre("ifunc1"));
}

// As when the key that signed it is revoked.
TEST_F(CodeStoreTest, a_library_that_is_evicted_by_id_takes_its_users_and_its_names_along) {
  ASSERT_TRUE(policy_.allow_export("lib_*"));
  const auto changed = [](const Bundle& bundle, const auto& change) {
    auto manifest = bundle.manifest();
    change(manifest);
    return *Bundle::pack(std::move(manifest), {*bundle.unpack(0)});
  };
  auto object = counting_object();
  object.symbols.push_back({.name = "lib_count"});
  const auto library = changed(bundle_with("lib", object.build()), [](Manifest& manifest) {
    manifest.entries |= entry_library;
    manifest.exports = {"lib_count"};
  });
  const auto user = changed(bundle_with("user", testing::calling_object("lib_count").build()),
                            [](Manifest& manifest) { manifest.imports = {"lib_count"}; });
  auto& codes = store();
  for (const auto& bundle : {library, user, numbered(1)}) {
    const auto loaded = codes.load(bundle);
    ASSERT_TRUE(loaded) << loaded.error().message;
  }
  codes.evict(library.id());
  EXPECT_THAT(evicted_, ::testing::UnorderedElementsAre("lib", "user"));
  EXPECT_EQ(codes.find(user.id()), nullptr);
  EXPECT_FALSE(policy_.has_injected());
  EXPECT_EQ(codes.load(user).error().code, TC_ERR_UNRESOLVED);
}

TEST_F(CodeStoreTest, evicted_code_is_counted_until_the_executions_that_may_be_inside_have_ended) {
  Executions executions;
  CodeStoreOptions options;
  options.executions = &executions;
  auto& codes = store(options);
  Code* const code = *codes.load(numbered(1));
  const size_t whole = code->bytes;
  const auto inside = executions.enter();
  codes.evict(code->id());
  const size_t left = codes.stats().bytes;
  EXPECT_GT(left, 0u);
  EXPECT_LT(left, whole) << "the bundle is gone";
  for (int again = 0; again < 3; ++again) codes.housekeeping();
  EXPECT_EQ(codes.stats().bytes, left);
  EXPECT_EQ(codes.stats().retired, 1u);
  executions.leave(inside);
  codes.housekeeping();
  EXPECT_EQ(codes.stats().bytes, 0u);
  EXPECT_EQ(codes.stats().retired, 0u);
}

TEST_F(CodeStoreTest, ten_thousand_codes_in_a_small_budget_leave_memory_and_mappings_flat) {
  if ((*memory::Arena::create(memory::Arena::Kind::shared))->kind() != memory::Arena::Kind::shared)
    GTEST_SKIP() << "images cannot share mappings on this system, and take whole pages";
  CodeStoreOptions options;
  options.budget_bytes = 1024 * 1024;
  auto& codes = store(options);
  uint64_t tick = 0;
  const auto load_some = [&](uint64_t from, uint64_t to) {
    for (uint64_t i = from; i < to; ++i) {
      const auto loaded = codes.load(numbered(i));
      ASSERT_TRUE(loaded) << loaded.error().message;
      ASSERT_EQ(run(**loaded, i), i + 1);
      (*loaded)->last_used = ++tick;
      codes.housekeeping();
      ASSERT_LE(codes.stats().bytes, options.budget_bytes);
    }
  };
  load_some(0, 3000);  // fills the budget
  const auto before = memory::testing::process_memory();
  load_some(3000, 10'000);
  const auto after = memory::testing::process_memory();
  EXPECT_EQ(codes.stats().loads, 10'000u);
  EXPECT_GT(codes.stats().evictions, 9'000u / 2);
  EXPECT_LE(after.mappings, before.mappings + 4);
  EXPECT_LE(after.resident_bytes, before.resident_bytes + memory::testing::resident_slack);
}

// Each page fault would take longer than all the rest of loading.
TEST_F(CodeStoreTest, the_arena_is_mapped_before_small_codes_come) {
#ifdef TC_EMULATED
  GTEST_SKIP() << "the emulator's own page faults are counted too";
#endif
  if (memory::testing::resident_slack >= size_t{1} << 30) GTEST_SKIP() << "a sanitizer's allocator has ways of its own";
  if (!memory::populate(nullptr, 0)) GTEST_SKIP() << "this kernel maps nothing ahead";
  const auto page_faults = [] {
    rusage usage{};
    getrusage(RUSAGE_THREAD, &usage);
    return usage.ru_minflt;
  };
  auto& codes = store();
  constexpr uint64_t count = 60;
  std::vector<Bundle> bundles;
  for (uint64_t i = 0; i < count; ++i) {
    auto object = counting_object(i);
    object.code.resize(1024);
    object.data.resize(64);
    bundles.push_back(bundle_with(fmt::format("ifunc{}", i), object.build()));
  }
  long faults = 0;
  for (const auto& bundle : bundles) {
    const auto bytes = bundle.bytes();
    const auto before = page_faults();
    auto read = Bundle::read_carried(bytes, bundle.carried(), bundle.id());
    ASSERT_TRUE(read) << read.error().message;
    const auto code = codes.load(std::move(*read));
    ASSERT_TRUE(code) << code.error().message;
    EXPECT_EQ(run(**code, 1), 2u);
    faults += page_faults() - before;
    codes.housekeeping();
  }
  EXPECT_LT(faults, static_cast<long>(count));
}

}  // namespace
}  // namespace tc::target
