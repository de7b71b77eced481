// SPDX-License-Identifier: Apache-2.0
#include "wire/target_triple.h"

#include <gtest/gtest.h>

namespace tc {
namespace {

TargetTriple triple(std::string_view text) { return TargetTriple::parse(text).value(); }

struct Pair {
  std::string_view code;
  std::string_view node;
  bool runs;
  std::string_view why;
};

TEST(TargetTriple, is_compared_by_meaning_and_not_as_text) {
  const Pair table[] = {
      {"x86_64-pc-linux-gnu", "x86_64-unknown-linux-gnu", true, "the vendor says nothing"},
      {"x86_64-linux-gnu", "x86_64-unknown-linux-gnu", true, "Debian leaves the vendor out"},
      {"amd64-linux-gnu", "x86_64-linux-gnu", true, "two names of one architecture"},
      {"arm64-linux-gnu", "aarch64-unknown-linux-gnu", true, "two names of one architecture"},
      {"aarch64-unknown-linux5.10.0-gnu2.31.0", "aarch64-linux-gnu", true, "Zig writes versions into its triples"},
      {"riscv64gc-unknown-linux-gnu", "riscv64-linux-gnu", true, "Rust writes extensions into its triples"},
      {"x86_64-linux", "x86_64-linux-gnu", true, "no C library asked for"},
      {"x86_64-linux", "x86_64-linux-musl", true, "no C library asked for"},
      {"x86_64-linux-gnu", "aarch64-linux-gnu", false, "another architecture"},
      {"x86_64-linux-gnu", "x86_64-linux-musl", false, "another C library"},
      {"x86_64-linux-gnux32", "x86_64-linux-gnu", false, "32-bit pointers"},
      {"x86_64-linux-gnux32", "x86_64-linux-android", false, "two environments that we do not know"},
      {"x86_64-linux-android", "x86_64-linux-android", true, "the same one is the same one"},
      {"riscv64be-linux-gnu", "riscv64-linux-gnu", false, "another byte order"},
      {"aarch64_be-linux-gnu", "aarch64-linux-gnu", false, "another byte order"},
      {"s390x-linux-gnu", "powerpc64-linux-gnu", false, "two architectures that we do not know"},
      {"s390x-ibm-linux-gnu", "s390x-linux-gnu", true, "an architecture that we do not know matches by name"},
      {"x86_64-apple-darwin", "x86_64-linux-gnu", false, "another system"},
      {"x86_64-apple-darwin", "x86_64-pc-windows-msvc", false, "two systems that we do not know"},
      {"x86_64-unknown-none-elf", "x86_64-linux-gnu", false, "no system at all"},
  };
  for (const auto& [code, node, runs, why] : table)
    EXPECT_EQ(triple(code).runs_on(triple(node)), runs) << code << " on " << node << ": " << why;
}

TEST(TargetTriple, the_host_runs_what_was_built_for_it) {
  EXPECT_TRUE(TargetTriple::host().runs_on(TargetTriple::host()));
  EXPECT_EQ(TargetTriple::host().system, System::linux_elf);
}

TEST(TargetTriple, the_text_is_kept_as_it_was_written) {
  EXPECT_EQ(triple("aarch64-unknown-linux5.10.0-gnu2.31.0").text, "aarch64-unknown-linux5.10.0-gnu2.31.0");
}

TEST(TargetTriple, what_is_no_triple_is_refused_with_an_example) {
  for (const auto* text : {"", "x86_64", "-linux-gnu", "a-b-c-d-e"}) {
    const auto parsed = TargetTriple::parse(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_EQ(parsed.error().code, TC_ERR_INVALID);
    EXPECT_NE(parsed.error().message.find("x86_64-linux-gnu"), std::string::npos);
  }
  EXPECT_FALSE(TargetTriple::parse("x86_64-linux-" + std::string(60, 'g')));
}

TEST(TargetTriple, architectures_have_names_for_messages) {
  EXPECT_EQ(arch_name(Arch::aarch64), "aarch64");
  EXPECT_EQ(arch_name(triple("s390x-linux-gnu").arch), "other");
}

}  // namespace
}  // namespace tc
