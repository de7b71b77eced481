// SPDX-License-Identifier: Apache-2.0
#include "target/code_store.h"

#include <gmock/gmock.h>

#include "target/testing/code_store_test_base.h"

namespace tc::target {
namespace {

using testing::bundle_with;
using testing::calling_object;
using testing::counting_object;
using ::testing::HasSubstr;
using ::testing::Not;

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

TEST_F(CodeStoreTest, loading_what_is_held_gives_the_same_code) {
  auto& codes = store();
  const auto first = codes.load(numbered(1));
  const auto second = codes.load(numbered(1));
  ASSERT_TRUE(first && second);
  EXPECT_EQ(*first, *second);
  EXPECT_EQ(codes.stats().loads, 1u);
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

}  // namespace
}  // namespace tc::target
