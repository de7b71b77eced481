// SPDX-License-Identifier: Apache-2.0
//
// Bitcode for one CPU is made into bitcode for another only when it says nothing about either.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "build_test_support.h"

namespace tc::toolchain {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr const char* head =
    "target datalayout = \"e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128\"\n"
    "target triple = \"x86_64-unknown-linux-gnu\"\n";

// Code for x86-64, asked for aarch64.
Workshop code(const std::string& before, const std::string& body) {
  Workshop shop;
  shop.request.targets = {aarch64};
  shop.request.externs = {"*"};
  shop.file("foo.ll",
            head + before + "\ndefine void @foo_main(ptr %p, i64 %n, ptr %t) {\n" + body + "\n  ret void\n}\n");
  return shop;
}

TEST(ToolchainRetarget, plain_pointer_code_is_made_into_another_targets) {
  const auto bundle = code("", "  %v = load i64, ptr %t\n  %w = add i64 %v, 1\n  store i64 %w, ptr %t").bundle();
  ASSERT_EQ(bundle.manifest().slices.size(), 2u);
  EXPECT_EQ(bundle.manifest().slices[0].triple.arch, Arch::aarch64);
  const auto text = read_module(bundle, SliceRole::target, aarch64).text();
  EXPECT_THAT(text, AllOf(HasSubstr("target triple = \"aarch64-"), HasSubstr("add i64")));
}

TEST(ToolchainRetarget, one_file_serves_all_targets_that_are_asked_for) {
  auto shop = code("", "  store i64 %n, ptr %t");
  shop.request.targets = {x86_64, aarch64, "riscv64-linux-gnu"};
  EXPECT_EQ(shop.bundle().manifest().slices.size(), 6u);
}

TEST(ToolchainRetarget, arguments_are_extended_as_riscv_wants_them) {
  auto shop =
      code("declare i32 @tc_forward(i32, ptr, i64)",
           "  %m = trunc i64 %n to i32\n  %r = call i32 @tc_forward(i32 %m, ptr %p, i64 %n)\n  store i32 %r, ptr %t");
  shop.request.targets = {"riscv64-linux-gnu"};
  EXPECT_THAT(read_module(shop.bundle(), SliceRole::target, "riscv64-linux-gnu").text(),
              HasSubstr("call signext i32 @tc_forward(i32 signext"));
}

TEST(ToolchainRetarget, functions_that_are_called_by_their_address_are_extended_as_well) {
  auto shop = code(
      "@compare = global ptr @less\n"
      "define internal i32 @less(i32 %a) {\n  %r = add i32 %a, 1\n  ret i32 %r\n}",
      "  %f = load volatile ptr, ptr @compare\n  %m = trunc i64 %n to i32\n"
      "  %r = call i32 %f(i32 %m)\n  store i32 %r, ptr %t");
  shop.request.targets = {"riscv64-linux-gnu"};
  const auto text = read_module(shop.bundle(), SliceRole::target, "riscv64-linux-gnu").text();
  EXPECT_THAT(text, HasSubstr("signext i32 @0(i32 signext"));
  EXPECT_THAT(text, testing::ContainsRegex("call signext i32 %[0-9a-z]+\\(i32 signext"));
}

TEST(ToolchainRetarget, long_double_is_refused) {
  EXPECT_THAT(
      code("", "  %v = load x86_fp80, ptr %t\n  %w = fadd x86_fp80 %v, %v\n  store x86_fp80 %w, ptr %t").refusal(),
      AllOf(HasSubstr("foo.ll: is bitcode for x86_64-unknown-linux-gnu, and cannot be made into aarch64-linux-gnu"),
            HasSubstr("x86_fp80 (long double)"), HasSubstr("have its front end emit bitcode for aarch64")));
}

TEST(ToolchainRetarget, an_instruction_of_one_cpu_is_refused_by_name) {
  EXPECT_THAT(code("declare void @llvm.x86.sse2.pause()", "  call void @llvm.x86.sse2.pause()").refusal(),
              HasSubstr("'llvm.x86.sse2.pause' is an instruction of its own CPU"));
}

TEST(ToolchainRetarget, structures_by_value_are_refused_with_their_size) {
  EXPECT_THAT(
      code("declare void @solve(ptr byval([24 x i8]))", "  call void @solve(ptr byval([24 x i8]) %p)").refusal(),
      HasSubstr("'solve' takes a structure of 24 bytes by value"));
  EXPECT_THAT(code("declare void @make(ptr sret([32 x i8]))", "  call void @make(ptr sret([32 x i8]) %t)").refusal(),
              HasSubstr("'make' returns a structure of 32 bytes by value"));
  EXPECT_THAT(code("declare {double, double} @pair()",
                   "  %v = call {double, double} @pair()\n  store {double, double} %v, ptr %t")
                  .refusal(),
              HasSubstr("'pair' returns a structure of 16 bytes by value"));
}

TEST(ToolchainRetarget, structures_by_value_between_functions_of_the_file_are_fine) {
  EXPECT_EQ(
      code("define internal {i64, i64} @pair(i64 %n) noinline {\n  %v = insertvalue {i64, i64} poison, i64 %n, 0\n"
           "  %w = insertvalue {i64, i64} %v, i64 %n, 1\n  ret {i64, i64} %w\n}",
           "  %v = call {i64, i64} @pair(i64 %n)\n  store {i64, i64} %v, ptr %t")
          .bundle()
          .manifest()
          .slices.size(),
      2u);
}

TEST(ToolchainRetarget, variable_arguments_and_assembly_are_refused) {
  EXPECT_THAT(code("declare void @llvm.va_start.p0(ptr)\ndeclare void @use(ptr)\n"
                   "define internal void @many(i64 %n, ...) noinline {\n  %a = alloca [32 x i8]\n"
                   "  call void @llvm.va_start.p0(ptr %a)\n  call void @use(ptr %a)\n  ret void\n}",
                   "  call void (i64, ...) @many(i64 %n, i64 1)")
                  .refusal(),
              HasSubstr("a variable number of arguments"));
  auto shop = code("", "  call void asm sideeffect \"pause\", \"\"()");
  shop.request.allow_asm = true;
  EXPECT_THAT(shop.refusal(), HasSubstr("it holds inline assembly"));
}

TEST(ToolchainRetarget, a_structure_with_another_layout_is_refused) {
  Workshop shop;
  shop.request.targets = {aarch64};
  // As LLVM 17 and older laid it out: 128-bit integers at multiples of 8.
  shop.file("foo.ll",
            "target datalayout = \"e-m:o-i64:64-i128:64-n8:16:32:64-S128\"\n"
            "target triple = \"x86_64-unknown-linux-gnu\"\n%mixed = type { i64, i128 }\n"
            "@kept = internal global %mixed zeroinitializer\n"
            "define void @foo_main(ptr %p, i64 %n, ptr %t) {\n  store volatile i64 %n, ptr @kept\n"
            "  %v = load volatile i64, ptr @kept\n  store i64 %v, ptr %t\n  ret void\n}\n");
  EXPECT_THAT(shop.refusal(), HasSubstr("has another layout there"));
}

}  // namespace
}  // namespace tc::toolchain
