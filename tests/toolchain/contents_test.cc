// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "build_test_support.h"

namespace tc::toolchain {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr const char* saxpy =
    "void foo_main(void *p, size_t n, void *t) {\n"
    "  const float *restrict x = p; float *restrict y = t;\n"
    "  for (size_t i = 0; i < n / 4; ++i) y[i] += 3 * x[i];\n}\n";

TEST(ToolchainContents, each_target_gets_bitcode_and_an_object) {
  auto shop = c_file("foo", saxpy);
  shop.request.targets = {x86_64, aarch64};
  const auto bundle = shop.bundle();
  ASSERT_EQ(bundle.manifest().slices.size(), 4u);
  for (const auto* const triple : {x86_64, aarch64}) {
    slice_of(bundle, SliceRole::target, SliceForm::bitcode, triple);
    const auto object = slice_of(bundle, SliceRole::target, SliceForm::object, triple);
    EXPECT_EQ(bundle.manifest().slices[object].cpu, triple == x86_64 ? "x86-64-v2" : "generic");
  }
}

TEST(ToolchainContents, either_form_can_be_left_out) {
  auto shop = c_file("foo", saxpy);
  shop.request.objects = false;
  ASSERT_EQ(shop.bundle().manifest().slices.size(), 1u);
  EXPECT_EQ(shop.bundle().manifest().slices[0].form, SliceForm::bitcode);
  shop.request.objects = true;
  shop.request.bitcode = false;
  ASSERT_EQ(shop.bundle().manifest().slices.size(), 1u);
  EXPECT_EQ(shop.bundle().manifest().slices[0].form, SliceForm::object);
}

TEST(ToolchainContents, the_same_source_gives_the_same_content_id_from_any_directory) {
  auto one = c_file("foo", saxpy), two = c_file("foo", saxpy);
  one.request.targets = two.request.targets = {x86_64, aarch64};
  ASSERT_NE(one.path(), two.path());
  EXPECT_EQ(one.bundle().id(), two.bundle().id());
  EXPECT_EQ(one.bundle().bytes(), one.bundle().bytes());
}

TEST(ToolchainContents, another_source_gives_another_content_id) {
  EXPECT_NE(
      c_file("foo", saxpy).bundle().id(),
      c_file("foo", "void foo_main(void *p, size_t n, void *t) { (void)p, (void)n; ++*(int *)t; }").bundle().id());
}

TEST(ToolchainContents, loops_travel_before_they_are_vectorised) {
  const auto text = read_module(c_file("foo", saxpy).bundle(), SliceRole::target).text();
  EXPECT_THAT(text, HasSubstr("float"));
  EXPECT_THAT(text, Not(HasSubstr("x float>")));
}

TEST(ToolchainContents, nothing_ties_the_bitcode_to_a_cpu_or_to_this_machine) {
  auto shop = c_file("foo", saxpy);
  shop.request.clang_flags = {"-g", "-march=native", "-fstack-protector-strong", "-pg"};
  const auto text = read_module(shop.bundle(), SliceRole::target).text();
  for (const auto* const trace :
       {"target-cpu", "target-features", "tune-cpu", "!dbg", "!llvm.ident", "DICompileUnit", "foo.c"})
    EXPECT_THAT(text, Not(HasSubstr(trace)));
}

TEST(ToolchainContents, hints_for_loops_stay_and_straight_code_has_no_metadata) {
  EXPECT_THAT(read_module(c_file("foo", saxpy).bundle(), SliceRole::target).text(), HasSubstr("!tbaa"));
  const auto straight =
      c_file("foo", "void foo_main(void *p, size_t n, void *t) { (void)n; *(int *)t = *(int *)p; }").bundle();
  EXPECT_THAT(read_module(straight, SliceRole::target).text(), Not(HasSubstr("!tbaa")));
}

TEST(ToolchainContents, helpers_counters_and_tables_of_strings_travel_along) {
  const auto bundle =
      c_file("foo",
             "static int calls; static const char *const words[] = {\"none\", \"one\", \"many\"};\n"
             "__attribute__((noinline)) static const char *word(size_t n) { return words[n > 2 ? 2 : n]; }\n"
             "void foo_main(void *p, size_t n, void *t) { (void)p; *(int *)t = ++calls; tc_log(1, word(n)); }\n")
          .bundle();
  EXPECT_EQ(bundle.manifest().imports, std::vector<std::string>{"tc_log"});
  const auto text = read_module(bundle, SliceRole::target).text();
  EXPECT_THAT(text, HasSubstr("c\"many\\00\""));
  EXPECT_THAT(text, Not(HasSubstr("words")));  // names of the author's own stay at home
}

TEST(ToolchainContents, atomics_are_inline_on_aarch64) {
  auto shop = c_file(
      "foo",
      "void foo_main(void *p, size_t n, void *t) { (void)p; __atomic_fetch_add((size_t *)t, n, __ATOMIC_SEQ_CST); }");
  shop.request.targets = {aarch64};
  EXPECT_TRUE(shop.bundle().manifest().imports.empty());
}

TEST(ToolchainContents, a_target_without_a_baseline_gets_bitcode_alone) {
  auto shop = c_file("foo", "void foo_main(void *p, size_t n, void *t) { (void)p, (void)n; ++*(int *)t; }");
  shop.request.targets = {"powerpc64le-linux-gnu"};
  const auto built = shop.build();
  ASSERT_TRUE(built) << built.error().message;
  EXPECT_EQ(built->bundle.manifest().slices.size(), 1u);
  EXPECT_THAT(built->warnings, testing::ElementsAre(HasSubstr("no object slice for powerpc64le-linux-gnu")));
  shop.request.bitcode = false;
  EXPECT_THAT(shop.refusal(), HasSubstr("it is bitcode alone"));
}

TEST(ToolchainContents, riscv64_keeps_the_name_of_its_abi) {
  auto shop = c_file("foo", "void foo_main(void *p, size_t n, void *t) { (void)n; *(double *)t += *(double *)p; }");
  shop.request.targets = {"riscv64-linux-gnu"};
  const auto bundle = shop.bundle();
  EXPECT_THAT(read_module(bundle, SliceRole::target, "riscv64-linux-gnu").text(), HasSubstr("lp64d"));
  slice_of(bundle, SliceRole::target, SliceForm::object, "riscv64-linux-gnu");
}

TEST(ToolchainContents, headers_of_the_c_library_are_found_for_every_default_target) {
  auto shop = c_file("foo",
                     "#include <string.h>\n#include <math.h>\n"
                     "void foo_main(void *p, size_t n, void *t) { memcpy(t, p, n); }");
  shop.request.targets = default_targets();
  EXPECT_EQ(shop.bundle().manifest().imports, std::vector<std::string>{"memcpy"});
}

TEST(ToolchainContents, cxx_templates_lambdas_and_spans_need_nothing_at_the_target) {
  Workshop shop;
  shop.file("foo.cc",
            "#include <algorithm>\n#include <cstdint>\n#include <span>\n#include <threechains/ifunc.h>\n"
            "extern \"C\" void foo_main(void* p, size_t n, void*) {\n"
            "  const std::span<uint32_t> numbers(static_cast<uint32_t*>(p), n / 4);\n"
            "  std::sort(numbers.begin(), numbers.end(), [](auto a, auto b) { return a > b; });\n"
            "  tc_reply(numbers.data(), numbers.size_bytes());\n}\n");
  EXPECT_THAT(shop.bundle().manifest().imports, testing::Contains("tc_reply"));
}

}  // namespace
}  // namespace tc::toolchain
