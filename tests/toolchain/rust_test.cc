// SPDX-License-Identifier: Apache-2.0
//
// Rust, where there is a rustc: any version back to 1.63, whose bitcode is LLVM 14's.
#include <cstdlib>

#include "running_support.h"

namespace tc::toolchain {
namespace {

using testing::AllOf;
using testing::HasSubstr;

Workshop rust(const std::string& text) {
  Workshop shop;
  shop.file("foo.rs", "#![no_std]\nuse threechains_ifunc::*;\n" + text);
  return shop;
}

bool has_rustc() { return std::getenv("TC_RUSTC") != nullptr || std::system("rustc --version >/dev/null 2>&1") == 0; }

class ToolchainRust : public RunningTest {
 protected:
  void SetUp() override {
    if (!has_rustc()) GTEST_SKIP() << "there is no rustc";
    RunningTest::SetUp();
  }
};
INSTANTIATE_TEST_SUITE_P(Forms, ToolchainRust, testing::Values(SliceForm::object, SliceForm::bitcode), form_name);

TEST_P(ToolchainRust, slices_are_summed_and_answered) {
  load(
      rust("ifunc! { fn foo_main(payload: &mut [u8]) {\n"
           "  let sum = payload.iter().map(|&b| b as u64).sum::<u64>();\n"
           "  let _ = reply(bytes_of(&sum)); } }\n"));
  run("abc", nullptr);
  EXPECT_EQ(host_.replied, std::string("\x26\x01\0\0\0\0\0\0", 8));
  run("", nullptr);
  EXPECT_EQ(host_.replied, std::string(8, '\0'));
}

TEST_P(ToolchainRust, concurrent_code_is_marked_and_runs) {
  const std::string body = "fn foo_main(payload: &mut [u8]) { let _ = reply(payload); } }\n";
  EXPECT_FALSE(rust("ifunc! { " + body).bundle().manifest().has(entry_concurrent));
  const auto shop = rust("ifunc! { concurrent " + body);
  EXPECT_TRUE(shop.bundle().manifest().has(entry_concurrent));
  EXPECT_TRUE(rust("ifunc! { concurrent fn foo_main(payload: &mut [u8], _target: Target) {\n"
                   "  let _ = reply(payload); } }\n")
                  .bundle()
                  .manifest()
                  .has(entry_concurrent));
  load(shop);
  run("abc", nullptr);
  EXPECT_EQ(host_.replied, "abc");
}

TEST_P(ToolchainRust, target_args_and_failures_reach_the_target) {
  load(
      rust("ifunc! { fn foo_main(payload: &mut [u8], target: Target) {\n"
           "  if payload.is_empty() { fail!(5, \"nothing to add\"); return; }\n"
           "  if let Some(counter) = unsafe { target.get::<u64>() } { *counter += payload[0] as u64; } } }\n"));
  uint64_t counter = 1;
  run("\x02", &counter);
  EXPECT_EQ(counter, 3u);
  run("", &counter);
  EXPECT_EQ(host_.failed, "5 nothing to add");
}

TEST_P(ToolchainRust, panics_fail_the_call_with_their_code_and_line) {
  load(
      rust("#[inline(never)]\nfn pick(bytes: &[u8], at: usize) -> u8 { bytes[at] }\n"
           "ifunc! { fn foo_main(payload: &mut [u8], target: Target) {\n"
           "  let found = pick(payload, payload.len() - 1 + (payload[0] == b'x') as usize);\n"
           "  if found == b'n' { None::<u8>.unwrap(); }\n"
           "  let shares = 100 / (found - b'0') as u32;\n"
           "  unsafe { *target.get::<u32>().unwrap() = shares; } } }\n"));
  uint32_t shares = 0;
  run("5", &shares);
  EXPECT_EQ(shares, 20u);
  run("x5", &shares);
  EXPECT_EQ(host_.failed, "-3 index out of bounds at foo.rs:4");
  run("0", &shares);
  EXPECT_THAT(host_.failed, AllOf(HasSubstr("-4 "), HasSubstr("zero at foo.rs:8")));
  run("n", &shares);
  EXPECT_THAT(host_.failed, HasSubstr("-5 "));
  EXPECT_EQ(shares, 20u);
}

TEST_P(ToolchainRust, flags_of_the_author_are_given_to_the_compiler_of_the_source) {
  auto shop = rust(
      "const SAID: &[u8] = if cfg!(loud) { b\"HELLO\" } else { b\"hello\" };\n"
      "ifunc! { fn foo_main(_payload: &mut [u8]) { let _ = reply(SAID); } }\n");
  shop.request.clang_flags = {"--cfg", "loud"};
  load(shop);
  run("", nullptr);
  EXPECT_EQ(host_.replied, "HELLO");
}

TEST(ToolchainRustBuild, both_architectures_are_built) {
  if (!has_rustc()) GTEST_SKIP() << "there is no rustc";
  auto shop = rust("ifunc! { fn foo_main(payload: &mut [u8]) { let _ = reply(payload); } }\n");
  shop.request.targets = {};
  const auto built = shop.build();
  if (!built && built.error().message.find("rustup target add") != std::string::npos)
    GTEST_SKIP() << built.error().message;
  ASSERT_TRUE(built) << built.error().message;
  EXPECT_EQ(built->bundle.manifest().slices.size(), 4u);
}

TEST(ToolchainRustBuild, a_function_of_core_that_is_not_inlined_is_refused_by_name) {
  if (!has_rustc()) GTEST_SKIP() << "there is no rustc";
  EXPECT_THAT(rust("ifunc! { fn foo_main(payload: &mut [u8]) {\n  let ok = core::str::from_utf8(payload).is_ok();\n"
                   "  let _ = reply(&[ok as u8]); } }\n")
                  .refusal(),
              AllOf(HasSubstr("from_utf8"), HasSubstr("foo.rs:4"), HasSubstr("Rust's own libraries")));
}

TEST(ToolchainRustBuild, a_missing_compiler_or_target_is_named_with_the_remedy) {
  auto shop = rust("ifunc! { fn foo_main(payload: &mut [u8]) { let _ = reply(payload); } }\n");
  const char* const before = std::getenv("TC_RUSTC");
  const std::string kept = before ? before : "";
  setenv("TC_RUSTC", "/nonexistent/rustc", 1);
  EXPECT_THAT(shop.refusal(), HasSubstr("TC_RUSTC is set to '/nonexistent/rustc'"));
  setenv("TC_RUSTC", "/bin/false", 1);
  EXPECT_THAT(shop.refusal(), HasSubstr("rustup target add x86_64-unknown-linux-gnu"));
  if (before)
    setenv("TC_RUSTC", kept.c_str(), 1);
  else
    unsetenv("TC_RUSTC");
}

TEST(ToolchainDelegates, a_missing_package_of_python_or_julia_is_named_with_the_remedy) {
  Workshop python, julia;
  python.file("foo.py", "# an ifunc\n");
  julia.file("foo.jl", "# an ifunc\n");
  setenv("TC_PYTHON", "/bin/false", 1);
  setenv("TC_JULIA", "/bin/false", 1);
  EXPECT_THAT(python.refusal(), AllOf(HasSubstr("foo.py"), HasSubstr("/bin/false -m pip install '.[numba]'")));
  EXPECT_THAT(julia.refusal(), AllOf(HasSubstr("foo.jl"), HasSubstr("ThreeChains.jl")));
  setenv("TC_JULIA", "/nonexistent/julia", 1);
  EXPECT_THAT(julia.refusal(), HasSubstr("TC_JULIA is set to '/nonexistent/julia'"));
  unsetenv("TC_PYTHON");
  unsetenv("TC_JULIA");
}

TEST(ToolchainDelegates, flags_of_the_author_are_given_to_the_package_of_python_or_julia) {
  for (const auto& [variable, source] : {std::pair("TC_PYTHON", "foo.py"), std::pair("TC_JULIA", "foo.jl")}) {
    Workshop shop;
    shop.file(source, "# an ifunc\n");
    // In place of the package: it writes down what it is told.
    shop.file("package", fmt::format("#!/bin/sh\necho \"$@\" > '{}'\nexit 1\n", (shop.path() / "told").string()));
    std::filesystem::permissions(shop.path() / "package", std::filesystem::perms::owner_all);
    setenv(variable, (shop.path() / "package").c_str(), 1);
    shop.request.clang_flags = {"--first", "--second=2"};
    EXPECT_THAT(shop.refusal(), HasSubstr(source));
    const auto told = read_file(shop.path() / "told", 1 << 16).value_or(Bytes());
    EXPECT_THAT(std::string(as_text(told)), testing::EndsWith(" --first --second=2\n"));
    unsetenv(variable);
  }
}

}  // namespace
}  // namespace tc::toolchain
