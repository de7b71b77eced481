// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "build_test_support.h"
#include "toolchain/frontend.h"

namespace tc::toolchain {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr const char* plain =
    "#include <stddef.h>\n#include <stdint.h>\n"
    "void foo_main(void *p, size_t n, void *t) { (void)p, (void)n; ++*(uint64_t *)t; tc_reply(p, n); }\n";

TEST(CrossTargets, what_needs_no_libc_headers_builds_for_every_one) {
  for (const auto& target : cross_targets()) {
    auto shop = c_file("foo", plain);
    shop.request.targets = {target.triple};
    const auto bundle = shop.bundle();
    ASSERT_FALSE(bundle.manifest().slices.empty()) << target.triple;
    EXPECT_EQ(bundle.manifest().slices[0].triple.text, target.triple);
  }
}

TEST(CrossTargets, the_list_names_every_one_with_what_it_lacks) {
  const auto list = list_targets();
  for (const auto& target : cross_targets()) EXPECT_THAT(list, HasSubstr(target.triple));
  EXPECT_THAT(list, HasSubstr("this machine's own"));
  EXPECT_THAT(list, HasSubstr("s390x"));
}

TEST(CrossTargets, a_word_that_is_no_triple_is_refused_with_the_triple_that_is_meant) {
  for (const auto& [word, triple] :
       {std::pair{"arm64", "aarch64-linux-gnu"}, std::pair{"aarch64", "aarch64-linux-gnu"},
        std::pair{"amd64", "x86_64-linux-gnu"}, std::pair{"x86_64", "x86_64-linux-gnu"},
        std::pair{"riscv64", "riscv64-linux-gnu"}, std::pair{"ppc64el", "powerpc64le-linux-gnu"}}) {
    auto shop = c_file("foo", plain);
    shop.request.targets = {word};
    EXPECT_THAT(shop.refusal(), HasSubstr(fmt::format("did you mean '{}'? `--target list` prints", triple))) << word;
  }
  auto shop = c_file("foo", plain);
  shop.request.targets = {"potato"};
  EXPECT_THAT(shop.refusal(), AllOf(HasSubstr("`--target list` prints"), Not(HasSubstr("did you mean"))));
}

TEST(CrossTargets, a_big_endian_and_a_32_bit_target_are_refused_with_the_reason) {
  auto shop = c_file("foo", plain);
  shop.request.targets = {"s390x-linux-gnu"};
  EXPECT_THAT(shop.refusal(), HasSubstr("big-endian"));
  shop.request.targets = {"i686-linux-gnu"};
  EXPECT_THAT(shop.refusal(), HasSubstr("no 64-bit machine"));
}

TEST(CrossTargets, missing_headers_are_named_as_a_package) {
  const auto headers = find_cross_headers(*TargetTriple::parse("powerpc64le-linux-gnu"));
  EXPECT_THAT(headers.c_remedy, HasSubstr("libc6-dev-ppc64el-cross"));
  EXPECT_THAT(headers.cxx_remedy, HasSubstr("libstdc++-12-dev-ppc64el-cross"));
}

TEST(CrossTargets, zig_is_given_triples_as_it_writes_them) {
  const auto name = [](const char* triple) { return zig_triple(*TargetTriple::parse(triple)); };
  EXPECT_EQ(name("x86_64-unknown-linux-gnu"), "x86_64-linux-gnu");
  EXPECT_EQ(name("aarch64-linux-musl"), "aarch64-linux-musl");
  EXPECT_EQ(name("mips64el-linux-gnuabi64"), "mips64el-linux-gnuabi64");
}

TEST(CrossTargets, libc_headers_come_from_zig_where_it_is_installed) {
  if (find_zig().empty())
    GTEST_SKIP() << "there is no zig; scripts/zig --fetch gets it, and TC_ZIG=scripts/zig makes this test use it";
  if (!find_cross_headers(*TargetTriple::parse("powerpc64le-linux-musl")).c.empty())
    GTEST_SKIP() << "this machine has headers of its own for powerpc64le-linux-musl";
  auto shop = c_file("foo",
                     "#include <string.h>\n"
                     "void foo_main(void *p, size_t n, void *t) { (void)t; memset(p, 0, n); tc_reply(p, n); }\n");
  shop.request.targets = {"powerpc64le-linux-musl"};
  EXPECT_EQ(shop.bundle().manifest().slices.size(), 1u);
}

}  // namespace
}  // namespace tc::toolchain
