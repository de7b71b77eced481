// SPDX-License-Identifier: Apache-2.0
#include "common/machine.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace tc::bench {
namespace {

TEST(Machine, an_argument_that_a_shell_would_take_apart_is_quoted) {
  EXPECT_EQ(shell_quoted("--servers"), "--servers");
  EXPECT_EQ(shell_quoted("2,4,8"), "2,4,8");
  EXPECT_EQ(shell_quoted(""), "''");
  EXPECT_EQ(shell_quoted("two words"), "'two words'");
  EXPECT_EQ(shell_quoted("it's"), "'it'\\''s'");
}

TEST(Machine, the_json_holds_the_command_without_this_machines_paths_and_what_it_ran_on) {
  nlohmann::ordered_json root;
  put_machine(root, describe_machine("1.2.3"));
  EXPECT_TRUE(root["command"].get<std::string>().starts_with("ifunc")) << root["command"];
  const auto& machine = root["machine"];
  EXPECT_EQ(machine["ucx"], "1.2.3");
  EXPECT_EQ(machine["cores"], usable_cpus());
  EXPECT_GT(machine["memory_bytes"].get<uint64_t>(), 1u << 20);
  EXPECT_TRUE(machine["kernel"].get<std::string>().starts_with("Linux ")) << machine["kernel"];
  EXPECT_EQ(machine["date"].get<std::string>().size(), 20u) << machine["date"];
  EXPECT_EQ(machine["load_before"].size(), 3u);
  EXPECT_EQ(machine["load_after"].size(), 3u);
}

}  // namespace
}  // namespace tc::bench
