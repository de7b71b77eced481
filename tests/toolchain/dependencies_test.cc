// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "build_test_support.h"
#include "toolchain/resolve.h"

namespace tc::toolchain {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* sine =
    "double sin(double);\n"
    "void foo_main(void *p, size_t n, void *t) { (void)n; *(double *)t = sin(*(double *)p); }\n";

TEST(ToolchainDependencies, a_deps_file_names_libraries_one_a_line) {
  auto shop = c_file("foo", sine);
  shop.file("foo.deps", "# what it needs\n\n  m   # sin\n");
  const auto bundle = shop.bundle();
  EXPECT_THAT(bundle.manifest().dependencies, ElementsAre("libm.so.6"));
  EXPECT_THAT(bundle.manifest().imports, ElementsAre("sin"));
}

TEST(ToolchainDependencies, a_pragma_does_the_same) {
  auto shop = c_file("foo", std::string("#pragma comment(lib, \"m\")\n") + sine);
  shop.request.targets = default_targets();
  EXPECT_THAT(shop.bundle().manifest().dependencies, ElementsAre("libm.so.6"));
}

TEST(ToolchainDependencies, a_library_named_twice_is_declared_once) {
  auto shop = c_file("foo", std::string("#pragma comment(lib, \"m\")\n") + sine);
  shop.file("foo.deps", "libm.so.6\nm\nc\n");
  EXPECT_THAT(shop.bundle().manifest().dependencies, ElementsAre("libm.so.6", "libc.so.6"));
}

TEST(ToolchainDependencies, a_symbol_that_the_library_lacks_is_refused_with_a_near_one) {
  auto shop = c_file("foo",
                     "double sinn(double);\n"
                     "void foo_main(void *p, size_t n, void *t) { (void)n; *(double *)t = sinn(*(double *)p); }\n");
  shop.file("foo.deps", "m\n");
  EXPECT_THAT(shop.refusal(), testing::AllOf(HasSubstr("'sinn' is called"), HasSubstr("of libm.so.6?)")));
}

TEST(ToolchainDependencies, an_unknown_library_is_accepted_with_a_warning) {
  auto shop = c_file(
      "foo", "void frob(void);\nvoid foo_main(void *p, size_t n, void *t) { (void)p, (void)n, (void)t; frob(); }\n");
  shop.file("foo.deps", "frobnicate\n");
  const auto built = shop.build();
  ASSERT_TRUE(built) << built.error().message;
  EXPECT_THAT(built->bundle.manifest().dependencies, ElementsAre("libfrobnicate.so"));
  EXPECT_THAT(built->warnings, ElementsAre(HasSubstr("'frobnicate' is not on this machine")));
}

TEST(ToolchainDependencies, a_path_is_refused) {
  auto shop = c_file("foo", sine);
  shop.file("foo.deps", "/usr/lib/libm.so.6\n");
  EXPECT_THAT(shop.refusal(), HasSubstr("is a path"));
}

TEST(ToolchainDependencies, sonames_are_found_for_short_and_full_names) {
  for (const auto* const name : {"sqlite3", "libsqlite3.so.0"}) {
    const auto library = find_library(name);
    ASSERT_TRUE(library) << library.error().message;
    if (!library->found) GTEST_SKIP() << "libsqlite3 is not installed";
    EXPECT_EQ(library->soname, "libsqlite3.so.0");
    EXPECT_TRUE(library->symbols.contains("sqlite3_open"));
  }
  EXPECT_EQ(find_library("c")->soname, "libc.so.6");
}

TEST(ToolchainDependencies, what_the_payload_functions_need_is_not_asked_of_the_target) {
  constexpr const char* source =
      "int abs(int); unsigned long crc32(unsigned long, const unsigned char *, unsigned);\n"
      "size_t foo_payload_bound(void *a, size_t n) { return n + (size_t)abs(*(int *)a); }\n"
      "int foo_payload_init(void *a, size_t n, void *p, size_t *m) { *(unsigned long *)p = crc32(0, a, (unsigned)n); "
      "*m = 8;"
      " return 0; }\n"
      "void foo_main(void *p, size_t n, void *t) { (void)p, (void)n; ++*(int *)t; }\n";
  auto shop = c_file("foo", source);
  EXPECT_THAT(shop.refusal(), testing::AllOf(HasSubstr("'crc32' is called at the source"), HasSubstr("source: ")));
  shop.file("foo.deps", "source: z\n");
  const auto bundle = shop.bundle();
  EXPECT_TRUE(bundle.manifest().dependencies.empty());
  EXPECT_TRUE(bundle.manifest().imports.empty());
}

}  // namespace
}  // namespace tc::toolchain
