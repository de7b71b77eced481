// SPDX-License-Identifier: Apache-2.0
#include "ifunc/usage.h"

#include <gtest/gtest.h>

namespace tc::command {
namespace {

// What a command with some options and subcommands says to these arguments; empty: it takes them.
std::string said_to(std::vector<std::string> arguments) {
  CLI::App app("about", "ifunc");
  app.require_subcommand(1);
  auto* const serve = app.add_subcommand("serve", "");
  std::string text;
  bool flag = false;
  serve->add_option("-l,--listen", text);
  serve->add_flag("--objects,!--no-objects", flag);
  auto* const key = app.add_subcommand("key", "");
  key->require_subcommand(1);
  key->add_subcommand("list", "");
  auto* const trust = key->add_subcommand("trust", "");
  trust->add_option("NAME", text)->required();
  std::ranges::reverse(arguments);  // as CLI11 wants them
  try {
    app.parse(arguments);
  } catch (const CLI::ParseError& error) {
    return usage_error(app, error);
  }
  return "";
}

TEST(WrongUsage, an_option_with_a_typing_error_is_named_with_the_one_that_is_meant) {
  EXPECT_EQ(
      said_to({"serve", "--lisen", "x"}),
      "ifunc serve: there is no option '--lisen'; did you mean '--listen'? `ifunc serve --help` lists its options");
  EXPECT_EQ(
      said_to({"serve", "--lisetn=x"}),
      "ifunc serve: there is no option '--lisetn'; did you mean '--listen'? `ifunc serve --help` lists its options");
  EXPECT_EQ(
      said_to({"serve", "--no-object"}),
      "ifunc serve: there is no option '--no-object'; did you mean '--no-objects'? `ifunc serve --help` lists its "
      "options");
}

TEST(WrongUsage, an_option_that_is_like_no_other_is_named) {
  EXPECT_EQ(said_to({"serve", "--frobnicate"}),
            "ifunc serve: there is no option '--frobnicate'; `ifunc serve --help` lists its options");
}

TEST(WrongUsage, a_command_with_a_typing_error_is_named_with_the_one_that_is_meant) {
  EXPECT_EQ(said_to({"sevre"}),
            "ifunc: there is no command 'sevre'; did you mean 'serve'? `ifunc --help` lists what there is");
  EXPECT_EQ(said_to({"key", "lst"}),
            "ifunc key: there is no command 'lst'; did you mean 'list'? `ifunc key --help` lists what there is");
  EXPECT_EQ(said_to({"frobnicate"}), "ifunc: there is no command 'frobnicate'; `ifunc --help` lists what there is");
}

TEST(WrongUsage, what_is_missing_or_too_much_is_named) {
  EXPECT_EQ(said_to({}), "ifunc: A subcommand is required; `ifunc --help` lists what there is");
  EXPECT_EQ(said_to({"key", "trust"}), "ifunc key trust: NAME is required; `ifunc key trust --help` lists its options");
  EXPECT_EQ(said_to({"serve", "x"}),
            "ifunc serve: 'x' is one argument too many; `ifunc serve --help` lists its options");
  EXPECT_EQ(said_to({"serve", "--listen", "x"}), "");
}

}  // namespace
}  // namespace tc::command
