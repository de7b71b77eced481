// SPDX-License-Identifier: Apache-2.0
//
// What other front ends hand over: LLVM's bitcode or assembly, through the same importer.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "build_test_support.h"

namespace tc::toolchain {
namespace {

using testing::HasSubstr;

std::string increment_for(const std::string& triple) {
  return "target triple = \"" + triple +
         "\"\n"
         "define void @foo_main(ptr %p, i64 %n, ptr %t) {\n"
         "  %v = load i64, ptr %t\n  %w = add i64 %v, 1\n  store i64 %w, ptr %t\n  ret void\n}\n";
}

TEST(ToolchainBitcodeInput, assembly_is_imported_for_the_triple_that_it_names) {
  Workshop shop;
  shop.request.targets = {};
  shop.file("foo.ll", increment_for("x86_64-unknown-linux-gnu"));
  const auto bundle = shop.bundle();
  ASSERT_EQ(bundle.manifest().slices.size(), 2u);
  EXPECT_EQ(bundle.manifest().slices[0].triple.arch, Arch::x86_64);
}

TEST(ToolchainBitcodeInput, one_file_for_each_triple_makes_a_fat_bundle) {
  Workshop shop;
  shop.request.targets = {};
  shop.file("foo.ll", increment_for("x86_64-unknown-linux-gnu"))
      .file("foo-arm.ll", increment_for("aarch64-unknown-linux-gnu"));
  shop.request.inputs.push_back(shop.path() / "foo-arm.ll");
  EXPECT_EQ(shop.bundle().manifest().slices.size(), 4u);
}

TEST(ToolchainBitcodeInput, bitcode_is_never_made_into_another_target) {
  Workshop shop;
  shop.request.targets = {aarch64};
  shop.file("foo.ll", increment_for("x86_64-unknown-linux-gnu"));
  EXPECT_THAT(shop.refusal(), HasSubstr("cannot be made into aarch64-linux-gnu"));
}

TEST(ToolchainBitcodeInput, junk_is_refused) {
  Workshop shop;
  shop.request.targets = {};
  shop.file("foo.bc", "BC\xC0\xDE this is no bitcode at all");
  EXPECT_THAT(shop.refusal(), HasSubstr("LLVM cannot read it"));
}

TEST(ToolchainBitcodeInput, code_that_breaks_llvms_rules_is_refused) {
  Workshop shop;
  shop.request.targets = {};
  shop.file("foo.ll",
            "target triple = \"x86_64-unknown-linux-gnu\"\n"
            "define void @foo_main(ptr %p, i64 %n, ptr %t) {\n  br label %b\na:\n  br label %b\nb:\n"
            "  %x = phi i64 [ 1, %a ]\n  store i64 %x, ptr %t\n  ret void\n}\n");
  EXPECT_THAT(shop.refusal(), HasSubstr("LLVM"));
}

}  // namespace
}  // namespace tc::toolchain
