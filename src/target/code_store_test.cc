// SPDX-License-Identifier: Apache-2.0
#include "target/code_store.h"

#include <gmock/gmock.h>
#include <sys/resource.h>

#include <functional>

#include "memory/arena.h"
#include "memory/code_mapping.h"
#include "memory/testing/process_memory.h"
#include "target/executor.h"
#include "target/testing/object_builder.h"

namespace tc::target {
namespace {

using testing::bundle_with;
using testing::calling_object;
using testing::counting_object;
using ::testing::HasSubstr;
using ::testing::Not;

// A store of objects.
class CodeStoreTest : public ::testing::Test {
 protected:
  CodeStore& store(CodeStoreOptions options = {}) {
    options.jit_plugin = "/nonexistent/plugin.so";  // these tests are about objects
    store_ = std::move(*CodeStore::create(options, policy_, [this](Code& code) { evicted_.push_back(code.name()); }));
    return *store_;
  }
  static uint64_t run(Code& code, uint64_t value) {
    code.entry.load()(nullptr, 0, &value);
    return value;
  }
  static Bundle numbered(uint64_t i) {
    return testing::bundle_with(fmt::format("ifunc{}", i), testing::counting_object(i).build());
  }

  Policy policy_;
  std::vector<std::string> evicted_;
  std::unique_ptr<CodeStore> store_;
};

TEST_F(CodeStoreTest, an_object_is_loaded_found_and_run) {
  auto& codes = store();
  const auto loaded = codes.load(bundle_with("count", counting_object().build()));
  ASSERT_TRUE(loaded) << loaded.error().message;
  EXPECT_EQ((*loaded)->tier.load(), Tier::object);
  EXPECT_EQ(run(**loaded, 41), 42u);
  EXPECT_EQ(codes.find((*loaded)->id()), *loaded);
  EXPECT_EQ(codes.stats().codes, 1u);
  EXPECT_EQ(codes.stats().object_loads, 1u);
  EXPECT_EQ(codes.stats().bytes, (*loaded)->bytes);
}

TEST_F(CodeStoreTest, an_address_in_an_object_is_counted_from_its_entry_point_also_once_other_code_is_entered) {
  auto& code = **store().load(numbered(1));
  const auto main = reinterpret_cast<uintptr_t>(code.entry.load());
  for (const auto entry : {code.entry.load(), EntryPoint{nullptr}}) {
    code.entry = entry;
    EXPECT_EQ(code.place_of(main + 1).symbol, abi_names::main);
    EXPECT_EQ(code.place_of(main + 1).offset, 1u);
  }
}

TEST_F(CodeStoreTest, loading_what_is_held_gives_the_same_code) {
  auto& codes = store();
  const auto first = codes.load(numbered(1));
  const auto second = codes.load(numbered(1));
  ASSERT_TRUE(first && second);
  EXPECT_EQ(*first, *second);
  EXPECT_EQ(codes.stats().loads, 1u);
}

class CodeStoreHolds : public CodeStoreTest {
 protected:
  // How a call of the code fails; nothing: it runs.
  static std::string failure_of(Code& code) {
    class Listener final : public IfuncHost {
     public:
      std::string said;
      void* data(std::string_view, size_t*) noexcept override { return nullptr; }
      tc_status_t reply(ByteView) noexcept override { return TC_OK; }
      tc_status_t forward(uint32_t, ByteView) noexcept override { return TC_OK; }
      tc_status_t forward_as(uint32_t, std::string_view, ByteView) noexcept override { return TC_OK; }
      tc_status_t inject(uint32_t, std::string_view, ByteView) noexcept override { return TC_OK; }
      void fail(int32_t, std::string_view message) noexcept override { said = message; }
      void log(int, std::string_view) noexcept override {}
    } listener;
    Executor executor(listener);
    const Executor::Scope scope(executor);
    uint64_t value = 0;
    executor.target_args = &value;
    executor.run(code, nullptr, 0);
    return listener.said;
  }
};

TEST_F(CodeStoreHolds, code_that_is_not_linked_and_whose_calls_fail) {
  auto& codes = store();
  auto* const code = codes.hold(numbered(1)).value();
  EXPECT_FALSE(code->is_linked());
  EXPECT_EQ(code->lane, Lane::cold);
  EXPECT_EQ(codes.stats().object_loads, 0u);
  EXPECT_EQ(codes.find(code->id()), code);
  EXPECT_THAT(failure_of(*code), HasSubstr("held for cells"));
  codes.housekeeping();
  EXPECT_FALSE(code->is_linked());
}

TEST_F(CodeStoreHolds, code_until_it_is_loaded_and_not_the_other_way_round) {
  auto& codes = store();
  auto* const code = codes.hold(numbered(1)).value();
  const size_t before = code->bytes;
  EXPECT_EQ(codes.load(numbered(1)).value(), code);
  EXPECT_TRUE(code->is_linked());
  EXPECT_EQ(code->lane, Lane::exclusive);
  EXPECT_GT(code->bytes, before);
  EXPECT_EQ(codes.stats().bytes, code->bytes);
  EXPECT_EQ(failure_of(*code), "");
  EXPECT_EQ(codes.hold(numbered(1)).value(), code);
  EXPECT_TRUE(code->is_linked());
}

TEST_F(CodeStoreHolds, code_that_does_not_link_as_it_was) {
  auto& codes = store();
  const auto bundle = bundle_with("user", calling_object("missing").build());
  auto* const code = codes.hold(bundle).value();
  EXPECT_EQ(codes.load(bundle).error().code, TC_ERR_UNRESOLVED);
  EXPECT_FALSE(code->is_linked());
  EXPECT_EQ(codes.find(bundle.id()), code);
}

TEST_F(CodeStoreHolds, no_code_that_could_never_run) {
  auto& codes = store();
  EXPECT_EQ(codes.hold(bundle_with("dependent", counting_object().build(), {"libm.so.6"})).error().code, TC_ERR_DENIED);
  CodeStoreOptions options;
  options.use_objects = options.use_bitcode = false;
  EXPECT_EQ(store(options).hold(numbered(1)).error().code, TC_ERR_NO_SLICE);
}

TEST_F(CodeStoreTest, changed_code_under_the_same_name_is_other_code) {
  auto& codes = store();
  const auto first = codes.load(bundle_with("same", counting_object(1).build()));
  const auto second = codes.load(bundle_with("same", counting_object(2).build()));
  ASSERT_TRUE(first && second);
  EXPECT_NE(*first, *second);
}

TEST_F(CodeStoreTest, a_compressed_object_is_unpacked) {
  auto object = counting_object();
  object.code.resize(4000, std::byte{0x90});
  const auto bytes = object.build();
  auto plain = bundle_with("packed", bytes);
  auto manifest = plain.manifest();
  manifest.slices[0].compressed = true;
  auto bundle = Bundle::pack(manifest, {*compress(bytes)});
  ASSERT_TRUE(bundle) << bundle.error().message;
  const auto loaded = store().load(std::move(*bundle));
  ASSERT_TRUE(loaded) << loaded.error().message;
  EXPECT_EQ(run(**loaded, 1), 2u);
}

TEST_F(CodeStoreTest, another_abi_version_is_refused_with_both_numbers) {
  auto plain = numbered(1);
  auto manifest = plain.manifest();
  manifest.abi_version = 7;
  const auto loaded = store().load(*Bundle::pack(manifest, {*plain.unpack(0)}));
  ASSERT_FALSE(loaded);
  EXPECT_EQ(loaded.error().code, TC_ERR_VERSION);
  EXPECT_THAT(loaded.error().message, HasSubstr("ifunc 'ifunc1'"));
  EXPECT_THAT(loaded.error().message, HasSubstr("version 7"));
}

TEST_F(CodeStoreTest, a_bundle_without_code_for_this_node_says_what_it_holds) {
  auto plain = numbered(1);
  auto manifest = plain.manifest();
  manifest.slices[0].triple = *TargetTriple::parse("sparc64-linux-gnu");
  const auto loaded = store().load(*Bundle::pack(manifest, {*plain.unpack(0)}));
  ASSERT_FALSE(loaded);
  EXPECT_EQ(loaded.error().code, TC_ERR_NO_SLICE);
  EXPECT_THAT(loaded.error().message, HasSubstr("sparc64-linux-gnu (object)"));
  EXPECT_THAT(loaded.error().message, HasSubstr(TargetTriple::host().text));
}

TEST_F(CodeStoreTest, objects_that_are_turned_off_are_not_run) {
  CodeStoreOptions options;
  options.use_objects = false;
  const auto loaded = store(options).load(numbered(1));
  ASSERT_FALSE(loaded);
  EXPECT_EQ(loaded.error().code, TC_ERR_NO_SLICE);
}

TEST_F(CodeStoreTest, a_library_that_is_not_allowed_is_named) {
  const auto loaded = store().load(bundle_with("needy", counting_object().build(), {"libm.so.6"}));
  ASSERT_FALSE(loaded);
  EXPECT_EQ(loaded.error().code, TC_ERR_DENIED);
  EXPECT_THAT(loaded.error().message, HasSubstr("ifunc 'needy'"));
  EXPECT_THAT(loaded.error().message, HasSubstr("libm.so.6"));
  EXPECT_EQ(store_->stats().bytes, 0u);
}

TEST_F(CodeStoreTest, an_object_without_entry_is_refused) {
  auto object = counting_object();
  object.symbols[0].name = "other_main";
  const auto loaded = store().load(bundle_with("lost", object.build()));
  ASSERT_FALSE(loaded);
  EXPECT_EQ(loaded.error().code, TC_ERR_MALFORMED);
  EXPECT_THAT(loaded.error().message, HasSubstr("ifunc_main"));
}

Bundle as_bitcode(const Bundle& plain) {
  auto manifest = plain.manifest();
  manifest.slices[0].form = SliceForm::bitcode;
  return *Bundle::pack(manifest, {*plain.unpack(0)});
}

TEST_F(CodeStoreTest, bitcode_that_this_node_does_not_compile_could_be_compiled_elsewhere) {
  CodeStoreOptions options;
  options.use_bitcode = false;
  const auto loaded = store(options).load(as_bitcode(numbered(1)));
  ASSERT_FALSE(loaded);
  EXPECT_EQ(loaded.error().code, TC_ERR_NO_SLICE);
  EXPECT_THAT(loaded.error().message, HasSubstr("--compile-at"));
  options.use_objects = false;
  EXPECT_THAT(store(options).load(as_bitcode(numbered(1))).error().message, Not(HasSubstr("--compile-at")));
}

TEST_F(CodeStoreTest, bitcode_without_a_plug_in_says_what_to_install) {
  const auto loaded = store().load(as_bitcode(numbered(1)));
  ASSERT_FALSE(loaded);
  EXPECT_EQ(loaded.error().code, TC_ERR_UNSUPPORTED);
  EXPECT_THAT(loaded.error().message, HasSubstr("/nonexistent/plugin.so"));
  EXPECT_THAT(loaded.error().message, HasSubstr("install"));
}

#if defined(__x86_64__)
uint64_t exported_calls = 0;
void exported(void*, size_t, void*) { ++exported_calls; }

TEST_F(CodeStoreTest, an_export_is_called_and_its_absence_is_named) {
  auto& codes = store();
  const auto refused = codes.load(bundle_with("caller", calling_object("app_function").build()));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, TC_ERR_UNRESOLVED);
  EXPECT_THAT(refused.error().message, HasSubstr("'app_function'"));
  policy_.export_symbol("app_function", reinterpret_cast<void*>(&exported));
  const auto loaded = codes.load(bundle_with("caller", calling_object("app_function").build()));
  ASSERT_TRUE(loaded) << loaded.error().message;
  exported_calls = 0;
  run(**loaded, 0);
  EXPECT_EQ(exported_calls, 1u);
}
#endif

// ---- How much memory it takes: its budget, eviction, and pages that are mapped ahead

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

// A library that exports `lib_count`, and an ifunc that calls it.
class CodeStoreLibrary : public CodeStoreTest {
 protected:
  CodeStoreLibrary() { EXPECT_TRUE(policy_.allow_export("lib_*")); }
  static Bundle changed(const Bundle& bundle, const std::function<void(Manifest&)>& change) {
    auto manifest = bundle.manifest();
    change(manifest);
    return *Bundle::pack(std::move(manifest), {*bundle.unpack(0)});
  }
  static Bundle made_library() {
    auto object = counting_object();
    object.symbols.push_back({.name = "lib_count"});
    return changed(bundle_with("lib", object.build()), [](Manifest& manifest) {
      manifest.entries |= entry_library;
      manifest.exports = {"lib_count"};
    });
  }
  const Bundle library = made_library();
  const Bundle user = changed(bundle_with("user", testing::calling_object("lib_count").build()),
                              [](Manifest& manifest) { manifest.imports = {"lib_count"}; });
};

// As when the key that signed it is revoked.
TEST_F(CodeStoreLibrary, that_is_evicted_by_id_takes_its_users_and_its_names_along) {
  auto& codes = store();
  for (const auto& bundle : {library, user, numbered(1)}) {
    const auto loaded = codes.load(bundle);
    ASSERT_TRUE(loaded) << loaded.error().message;
  }
  codes.evict(library.id());
  EXPECT_THAT(evicted_, ::testing::UnorderedElementsAre("lib", "user"));
  EXPECT_EQ(codes.find(user.id()), nullptr);
  EXPECT_FALSE(policy_.has_library_exports());
  EXPECT_EQ(codes.load(user).error().code, TC_ERR_UNRESOLVED);
}

TEST_F(CodeStoreLibrary, is_named_when_a_symbol_is_missing_and_with_no_other_error) {
  auto& codes = store();
  const auto with_against = [](const Bundle& bundle) {
    return changed(bundle, [](Manifest& manifest) {
      manifest.entries |= entry_against;
      manifest.against = {"lib"};
    });
  };
  const auto missing = codes.load(with_against(user));
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, TC_ERR_UNRESOLVED);
  EXPECT_THAT(missing.error().message, HasSubstr("it was built against library 'lib', which is not on this node"));
  auto wrong_object = counting_object();
  wrong_object.more_dynamic.push_back({.d_tag = DT_TEXTREL, .d_un = {.d_val = 1}});
  const auto wrong = codes.load(with_against(bundle_with("wrong", wrong_object.build())));
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().code, TC_ERR_MALFORMED);
  EXPECT_THAT(wrong.error().message, Not(HasSubstr("built against")));
}

TEST_F(CodeStoreLibrary, that_is_held_takes_its_names_and_binds_nothing_until_it_is_loaded) {
  auto& codes = store();
  auto* const held = codes.hold(library).value();
  EXPECT_EQ(codes.libraries(), std::vector<const Code*>{held});
  EXPECT_EQ(codes.library_changes(), 1u);
  EXPECT_EQ(codes.load(user).error().code, TC_ERR_UNRESOLVED);
  ASSERT_TRUE(codes.hold(user));
  const auto other = codes.hold(changed(library, [](Manifest& manifest) { manifest.name = "other"; }));
  ASSERT_FALSE(other);
  EXPECT_THAT(other.error().message, HasSubstr("which another library exports already"));
  ASSERT_TRUE(codes.load(library));
  EXPECT_EQ(codes.libraries(), std::vector<const Code*>{held});
  ASSERT_TRUE(codes.load(user)) << "it is bound to the library now";
  codes.evict(library.id());
  EXPECT_EQ(codes.find(user.id()), nullptr);
}

TEST_F(CodeStoreLibrary, that_is_held_is_refused_where_linked_code_would_lose_the_older_version) {
  auto& codes = store();
  ASSERT_TRUE(codes.load(library));
  ASSERT_TRUE(codes.load(user));
  const auto newer = changed(library, [](Manifest& manifest) { manifest.tool += " of another version"; });
  const auto held = codes.hold(newer);
  ASSERT_FALSE(held);
  EXPECT_EQ(held.error().code, TC_ERR_UNRESOLVED);
  EXPECT_NE(codes.find(library.id()), nullptr);
  EXPECT_TRUE(codes.find(user.id())->is_linked());
  codes.evict(user.id());
  EXPECT_TRUE(codes.hold(newer)) << "nobody uses it any more";
}

// Threads that run such code say so before they ask where it is.
TEST_F(CodeStoreLibrary, and_what_is_linked_to_it_may_be_replaced_and_nothing_else) {
  auto& codes = store();
  const auto may_be_replaced = [&](const Bundle& bundle) { return codes.load(bundle).value()->replaceable.load(); };
  EXPECT_TRUE(may_be_replaced(library));
  EXPECT_TRUE(may_be_replaced(user));
  EXPECT_FALSE(may_be_replaced(numbered(1)));
}

TEST_F(CodeStoreTest, code_that_threads_may_be_inside_of_is_counted_until_its_owner_frees_it) {
  CodeStoreOptions options;
  options.keep_replaced = true;
  auto& codes = store(options);
  Code* const code = *codes.load(numbered(1));
  const size_t whole = code->bytes;
  codes.evict(code->id());
  const size_t left = codes.stats().bytes;
  EXPECT_GT(left, 0u);
  EXPECT_LT(left, whole) << "the bundle is gone";
  for (int again = 0; again < 3; ++again) codes.housekeeping();
  EXPECT_EQ(codes.stats().bytes, left);
  EXPECT_EQ(codes.stats().retired, 1u);
  EXPECT_EQ(codes.replaced(), 1u);
  codes.free_replaced(0);
  EXPECT_EQ(codes.replaced(), 1u);
  codes.free_replaced(1);
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
