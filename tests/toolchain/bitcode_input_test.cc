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

TEST(ToolchainBitcodeInput, files_of_which_one_is_concurrent_code_are_refused_with_both_triples) {
  const std::string mark = "@tc_concurrent = constant i32 1\n";
  for (const bool is_first : {true, false}) {
    Workshop shop;
    shop.request.targets = {};
    shop.file("foo.ll", increment_for("x86_64-unknown-linux-gnu") + (is_first ? mark : ""))
        .file("foo-arm.ll", increment_for("aarch64-unknown-linux-gnu") + (is_first ? "" : mark));
    shop.request.inputs.push_back(shop.path() / "foo-arm.ll");
    EXPECT_THAT(
        shop.refusal(),
        HasSubstr(is_first ? "is TC_CONCURRENT for x86_64-unknown-linux-gnu and not for aarch64-unknown-linux-gnu"
                           : "is TC_CONCURRENT for aarch64-unknown-linux-gnu and not for x86_64-unknown-linux-gnu"));
  }
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

// What a JIT language's bitcode brings along: each is refused by name, with what to do instead.
std::string calling(const std::string& declaration, const std::string& call) {
  return "target triple = \"x86_64-unknown-linux-gnu\"\n" + declaration +
         "\ndefine void @foo_main(ptr %p, i64 %n, ptr %t) {\n  " + call + "\n  ret void\n}\n";
}

TEST(ToolchainBitcodeInput, an_array_allocated_by_numba_is_refused_with_what_to_do) {
  Workshop shop;
  shop.request.targets = {};
  shop.file("foo.ll", calling("declare ptr @NRT_MemInfo_alloc_aligned(i64, i32)",
                              "%a = call ptr @NRT_MemInfo_alloc_aligned(i64 %n, i32 32)\n  store i8 1, ptr %a"));
  EXPECT_THAT(shop.refusal(), AllOf(HasSubstr("'NRT_MemInfo_alloc_aligned' is called"), HasSubstr("loop over")));
}

TEST(ToolchainBitcodeInput, a_call_to_the_python_interpreter_is_refused_with_what_to_do) {
  Workshop shop;
  shop.request.targets = {};
  for (const std::string symbol : {"PyObject_CallObject", "numba_gil_ensure", "_PyLong_New"}) {
    shop.file("foo.ll", calling("declare void @" + symbol + "()", "call void @" + symbol + "()"));
    EXPECT_THAT(shop.refusal(), AllOf(HasSubstr("'" + symbol + "' is called"), HasSubstr("Python interpreter")));
  }
}

TEST(ToolchainBitcodeInput, a_call_to_the_julia_runtime_is_refused_with_what_to_do) {
  Workshop shop;
  shop.request.targets = {};
  shop.file("foo.ll",
            calling("declare ptr @jl_box_int64(i64)", "%a = call ptr @jl_box_int64(i64 %n)\n  store i8 1, ptr %a"));
  EXPECT_THAT(shop.refusal(), AllOf(HasSubstr("'jl_box_int64' is called"), HasSubstr("Julia runtime")));
}

TEST(ToolchainBitcodeInput, an_instruction_of_another_cpu_is_refused_when_code_was_retargeted) {
  Workshop shop;
  shop.request.targets = {};
  auto text = calling("declare void @llvm.x86.sse2.pause()", "call void @llvm.x86.sse2.pause()");
  shop.file("foo.ll", text);
  EXPECT_EQ(shop.bundle().manifest().slices.size(), 2u) << "on its own CPU it is fine";
  text.replace(text.find("x86_64"), 6, "aarch64");
  shop.file("foo.ll", text);
  EXPECT_THAT(shop.refusal(), AllOf(HasSubstr("'llvm.x86.sse2.pause' is another CPU's"), HasSubstr("aarch64")));
}

TEST(ToolchainBitcodeInput, an_80_bit_float_is_refused_where_there_is_none) {
  Workshop shop;
  shop.request.targets = {};
  auto text = calling("",
                      "%v = load double, ptr %p\n  %x = fpext double %v to x86_fp80\n"
                      "  store volatile x86_fp80 %x, ptr %t");
  text.replace(text.find("x86_64"), 6, "aarch64");
  shop.file("foo.ll", text);
  EXPECT_THAT(shop.refusal(), HasSubstr("'x86_fp80' is another CPU's"));
}

TEST(ToolchainBitcodeInput, an_address_in_a_jit_languages_global_is_refused) {
  Workshop shop;
  shop.request.targets = {};
  shop.file("foo.ll", calling("@numba.dynamic.globals.1 = internal global ptr inttoptr (i64 140737000000000 to ptr)",
                              "%a = load volatile ptr, ptr @numba.dynamic.globals.1\n  store i8 1, ptr %a"));
  EXPECT_THAT(shop.refusal(), AllOf(HasSubstr("written into the code"), HasSubstr("tc_data()")));
}

}  // namespace
}  // namespace tc::toolchain
