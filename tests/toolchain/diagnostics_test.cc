// SPDX-License-Identifier: Apache-2.0
//
// What compilers say for each target is shown once.
#include "toolchain/diagnostics.h"

#include <gtest/gtest.h>

namespace tc::toolchain {
namespace {

const std::string unused =
    "foo.c:3:7: warning: unused variable 'x' [-Wunused-variable]\n    3 |   int x;\n      |       ^\n";
const std::string in_header =
    "In file included from foo.c:1:\nIn file included from ./bar.h:1:\n./baz.h:1:2: warning: careful [-W#warnings]\n"
    "    1 | #warning careful\n      |  ^\n./baz.h:7:1: note: warned here\n";
const std::string shifted = "foo.c:9:3: \x1b[0;1;35mwarning: \x1b[0mshift count >= width of type\n    9 | a << 32;\n";

TEST(Diagnostics, are_shown_once_however_often_they_are_said) {
  Diagnostics diagnostics;
  const auto both = in_header + unused + "2 warnings generated.\n";
  EXPECT_EQ(diagnostics.take_new(both), both);
  EXPECT_EQ(diagnostics.take_new(both), "");
  EXPECT_EQ(diagnostics.take_new(""), "");
}

TEST(Diagnostics, that_only_one_target_has_are_shown) {
  Diagnostics diagnostics;
  EXPECT_EQ(diagnostics.take_new(unused + "1 warning generated.\n"), unused + "1 warning generated.\n");
  EXPECT_EQ(diagnostics.take_new(unused + shifted + "2 warnings generated.\n"), shifted + "2 warnings generated.\n");
  EXPECT_EQ(diagnostics.take_new(shifted + in_header + unused + "3 warnings generated.\n"),
            in_header + "3 warnings generated.\n");
}

TEST(Diagnostics, of_rust_are_messages_as_well) {
  const std::string one = "warning: unused variable: `x`\n --> foo.rs:3:9\n  |\n3 |     let x = 1;\n\n",
                    other = "error[E0425]: cannot find value `y`\n --> foo.rs:4:9\n\n";
  Diagnostics diagnostics;
  EXPECT_EQ(diagnostics.take_new(one + "warning: 1 warning emitted\n\n"), one + "warning: 1 warning emitted\n\n");
  EXPECT_EQ(diagnostics.take_new(one + other), other);
}

// A crash of a compiler, a line without an end: nothing is lost.
TEST(Diagnostics, are_all_that_a_compiler_says_whatever_its_form) {
  for (const std::string words :
       {"killed", "\n\n", "Stack dump:\n0. foo\n1. bar", "  warning: x\n", "In file included from a:"})
    EXPECT_EQ(Diagnostics().take_new(words), words);
}

}  // namespace
}  // namespace tc::toolchain
