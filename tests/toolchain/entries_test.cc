// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "build_test_support.h"

namespace tc::toolchain {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr const char* main_only = "void foo_main(void *p, size_t n, void *t) { (void)p, (void)n; ++*(int *)t; }\n";

std::vector<std::string> defined(const ReadModule& read) {
  std::vector<std::string> names;
  for (const auto& function : *read.module)
    if (!function.isDeclaration() && function.hasExternalLinkage()) names.push_back(function.getName().str());
  std::sort(names.begin(), names.end());
  return names;
}

TEST(ToolchainEntries, the_entry_has_the_same_symbol_whatever_the_ifunc_is_called) {
  const auto bundle = c_file("foo", main_only).bundle();
  EXPECT_EQ(bundle.manifest().name, "foo");
  EXPECT_EQ(bundle.manifest().entries, entry_main);
  EXPECT_EQ(defined(read_module(bundle, SliceRole::target)), std::vector<std::string>{"ifunc_main"});
}

TEST(ToolchainEntries, payload_functions_of_the_2021_form_go_to_a_slice_for_the_source) {
  const auto bundle =
      c_file("foo", std::string(main_only) +
                        "size_t foo_payload_get_max_size(void *a, size_t n) { (void)a; return n + 7; }\n"
                        "int foo_payload_init(void *p, size_t n, void *a, size_t an) { __builtin_memcpy(p, a, an); "
                        "return n < an; }\n")
          .bundle();
  EXPECT_EQ(bundle.manifest().entries, entry_main | entry_payload_get_max_size | entry_payload_init);
  EXPECT_EQ(defined(read_module(bundle, SliceRole::target)), std::vector<std::string>{"ifunc_main"});
  EXPECT_EQ(defined(read_module(bundle, SliceRole::source)),
            (std::vector<std::string>{"payload_get_max_size", "payload_init"}));
  slice_of(bundle, SliceRole::source, SliceForm::object);
}

TEST(ToolchainEntries, payload_functions_of_the_2022_form_are_told_apart_by_their_types) {
  const auto bundle = c_file("foo", std::string(main_only) +
                                        "size_t foo_payload_bound(void *a, size_t n) { (void)a; return n; }\n"
                                        "int foo_payload_init(void *a, size_t an, void *p, size_t *n) { "
                                        "__builtin_memcpy(p, a, an); *n = an; return 0; }\n")
                          .bundle();
  EXPECT_EQ(bundle.manifest().entries, entry_main | entry_payload_bound | entry_payload_init_2022);
  EXPECT_EQ(defined(read_module(bundle, SliceRole::source)),
            (std::vector<std::string>{"payload_bound", "payload_init"}));
}

TEST(ToolchainEntries, half_a_pair_of_payload_functions_is_refused) {
  EXPECT_THAT(
      c_file("foo", std::string(main_only) + "size_t foo_payload_bound(void *a, size_t n) { (void)a; return n; }")
          .refusal(),
      HasSubstr("defines foo_payload_bound but no foo_payload_init"));
}

TEST(ToolchainEntries, a_payload_function_of_another_type_is_refused) {
  EXPECT_THAT(c_file("foo", std::string(main_only) + "int foo_payload_init(void *p) { return p != 0; }").refusal(),
              HasSubstr("foo_payload_init has another type than"));
}

TEST(ToolchainEntries, a_file_without_its_entry_is_refused_with_what_it_has_instead) {
  const auto refusal =
      c_file("foo", "void fooo_main(void *p, size_t n, void *t) { (void)p, (void)n, (void)t; }\n").refusal();
  EXPECT_THAT(refusal, HasSubstr("foo.c: defines no foo_main"));
  EXPECT_THAT(refusal, HasSubstr("it does define 'fooo_main'"));
  EXPECT_THAT(refusal, HasSubstr("--name"));
  EXPECT_THAT(refusal, Not(HasSubstr("\n")));
}

TEST(ToolchainEntries, another_name_finds_another_entry) {
  auto shop = c_file("foo", "void bar_main(void *p, size_t n, void *t) { (void)p, (void)n, (void)t; }\n");
  shop.request.name = "bar";
  EXPECT_EQ(shop.bundle().manifest().name, "bar");
}

TEST(ToolchainEntries, a_file_name_that_is_no_c_name_is_refused) {
  EXPECT_THAT(c_file("foo-2", main_only).refusal(), HasSubstr("'foo-2' cannot be the name of an ifunc"));
  for (const auto* const name : {"0foo", "9foo"})
    EXPECT_THAT(c_file(name, main_only).refusal(), HasSubstr("cannot be the name of an ifunc")) << name;
}

TEST(ToolchainEntries, an_entry_of_another_type_is_refused) {
  EXPECT_THAT(c_file("foo", "void foo_main(int n) { (void)n; }").refusal(),
              HasSubstr("foo_main has another type than void foo_main(void *payload"));
}

TEST(ToolchainEntries, aliases_are_followed) {
  const auto bundle = c_file("foo",
                             "static void really(void *p, size_t n, void *t) { (void)p, (void)n; *(int *)t = 42; }\n"
                             "void foo_main(void *p, size_t n, void *t) __attribute__((alias(\"really\")));\n")
                          .bundle();
  const auto read = read_module(bundle, SliceRole::target);
  EXPECT_EQ(defined(read), std::vector<std::string>{"ifunc_main"});
  EXPECT_TRUE(read.module->alias_empty());
  EXPECT_THAT(read.text(), HasSubstr("store i32 42"));
}

// Where a linker would look for the entry, or which of several it would take, means nothing where it goes.
TEST(ToolchainEntries, an_entry_is_found_by_its_symbol_however_the_author_placed_it) {
  const std::string head = " foo_main(void *p, size_t n, void *t) { (void)p, (void)n; ++*(int *)t; }\n";
  for (const char* form :
       {"__attribute__((visibility(\"hidden\"))) void", "__attribute__((visibility(\"protected\"))) void",
        "__attribute__((weak)) void", "__attribute__((used)) static void", "__attribute__((section(\"mine\"))) void",
        "extern \"C\" __attribute__((used)) inline void"}) {
    SCOPED_TRACE(form);
    Workshop shop;
    shop.file(std::string_view(form).starts_with("extern") ? "foo.cc" : "foo.c",
              "#include <stddef.h>\n" + (form + head));
    const auto read = read_module(shop.bundle(), SliceRole::target);
    const auto* const entry = read.module->getFunction("ifunc_main");
    ASSERT_NE(entry, nullptr);
    EXPECT_TRUE(entry->hasExternalLinkage()) << read.text();
    EXPECT_TRUE(entry->hasDefaultVisibility()) << read.text();
    EXPECT_FALSE(entry->hasComdat()) << read.text();
    EXPECT_FALSE(entry->hasSection()) << read.text();
  }
}

TEST(ToolchainEntries, the_authors_own_function_may_be_called_ifunc_main) {
  const auto bundle =
      c_file("foo",
             "__attribute__((noinline)) void ifunc_main(int *t) { *t *= 3; __asm__ volatile(\"\" ::: \"memory\"); }\n"
             "void foo_main(void *p, size_t n, void *t) { (void)p, (void)n; ifunc_main(t); ifunc_main(t); }\n")
          .bundle();
  EXPECT_EQ(defined(read_module(bundle, SliceRole::target)), std::vector<std::string>{"ifunc_main"});
}

TEST(ToolchainEntries, a_cxx_entry_is_found_without_extern_c) {
  Workshop shop;
  shop.file("foo.cc",
            "#include <cstddef>\n"
            "template <class T> T twice(T x) { return x + x; }\n"
            "void foo_main(void*, size_t n, void* t) { auto add = [&](size_t x) { return x + n; }; *(size_t*)t = "
            "twice(add(4)); }\n");
  EXPECT_EQ(defined(read_module(shop.bundle(), SliceRole::target)), std::vector<std::string>{"ifunc_main"});
}

TEST(ToolchainEntries, payload_alignment_is_taken_from_the_source_in_c_and_cxx) {
  EXPECT_EQ(c_file("foo", main_only).bundle().manifest().payload_alignment_log2, 4);
  EXPECT_EQ(
      c_file("foo", std::string("TC_PAYLOAD_ALIGN(64);\n") + main_only).bundle().manifest().payload_alignment_log2, 6);
  Workshop shop;
  shop.file("foo.cpp",
            "#include <threechains/ifunc.h>\nTC_PAYLOAD_ALIGN(256);\n"
            "extern \"C\" void foo_main(void*, size_t, void* t) { ++*static_cast<int*>(t); }\n");
  const auto bundle = shop.bundle();
  EXPECT_EQ(bundle.manifest().payload_alignment_log2, 8);
  EXPECT_THAT(read_module(bundle, SliceRole::target).text(), Not(HasSubstr("256")));
}

TEST(ToolchainEntries, a_payload_alignment_that_no_target_gives_is_refused) {
  EXPECT_THAT(c_file("foo", std::string("TC_PAYLOAD_ALIGN(24);\n") + main_only).refusal(),
              HasSubstr("TC_PAYLOAD_ALIGN(24)"));
}

TEST(ToolchainEntries, concurrent_code_is_marked_by_its_source_in_c_and_cxx) {
  const auto ordinary = c_file("foo", main_only).bundle();
  EXPECT_FALSE(ordinary.manifest().has(entry_concurrent));
  const auto concurrent = c_file("foo", std::string("TC_CONCURRENT;\n") + main_only).bundle();
  EXPECT_EQ(concurrent.manifest().entries, entry_main | entry_concurrent);
  EXPECT_EQ(concurrent.stored(0).size(), ordinary.stored(0).size()) << "the mark itself does not travel";
  EXPECT_NE(concurrent.id(), ordinary.id());
  Workshop shop;
  shop.file("foo.cpp",
            "#include <threechains/ifunc.h>\nTC_CONCURRENT;\nTC_PAYLOAD_ALIGN(64);\n"
            "extern \"C\" void foo_main(void*, size_t, void* t) { ++*static_cast<int*>(t); }\n");
  const auto bundle = shop.bundle();
  EXPECT_TRUE(bundle.manifest().has(entry_concurrent));
  EXPECT_EQ(bundle.manifest().payload_alignment_log2, 6);
  EXPECT_THAT(read_module(bundle, SliceRole::target).text(), Not(HasSubstr("tc_concurrent")));
}

TEST(ToolchainEntries, the_mark_of_concurrent_code_is_kept_by_bundles_of_objects_alone) {
  auto shop = c_file("foo", std::string("TC_CONCURRENT;\n") + main_only);
  shop.request.bitcode = false;
  EXPECT_TRUE(shop.bundle().manifest().has(entry_concurrent));
}

TEST(ToolchainEntries, another_value_than_the_mark_of_concurrent_code_is_refused) {
  EXPECT_THAT(c_file("foo", std::string("const unsigned tc_concurrent = 2;\n") + main_only).refusal(),
              HasSubstr("defines 'tc_concurrent' as 2 when TC_CONCURRENT defines it as 1"));
  EXPECT_THAT(c_file("foo", std::string("const float tc_concurrent = 0;\n") + main_only).refusal(),
              HasSubstr("defines 'tc_concurrent' as 0, or no number, when TC_CONCURRENT"));
}

TEST(ToolchainEntries, a_concurrent_library_is_refused) {
  auto shop = c_file("foo", std::string("TC_CONCURRENT;\nint twice(int n) { return 2 * n; }\n") + main_only);
  shop.request.library = true;
  EXPECT_THAT(shop.refusal(), HasSubstr("foo.c: a library cannot be TC_CONCURRENT"));
}

TEST(ToolchainEntries, concurrent_code_with_static_constructors_is_refused) {
  auto shop = c_file("foo",
                     "TC_CONCURRENT;\nstatic uint32_t id;\n"
                     "__attribute__((constructor)) static void set(void) { id = tc_id(); }\n"
                     "void foo_main(void *p, size_t n, void *t) { (void)p, (void)n; *(uint32_t *)t = id; }\n");
  shop.request.allow_ctors = true;
  EXPECT_THAT(shop.refusal(), HasSubstr("TC_CONCURRENT code cannot have static constructors"));
}

}  // namespace
}  // namespace tc::toolchain
