// SPDX-License-Identifier: Apache-2.0
#include "ifunc/child_process.h"

#include <gtest/gtest.h>
#include <signal.h>

namespace tc::command {
namespace {

constexpr uint64_t long_enough_ms = 10'000;

int run(const std::vector<std::string>& arguments, const SpawnOptions& options = {}) {
  auto child = ChildProcess::spawn(arguments, options);
  if (!child) return -1;
  return child->wait(Deadline::after_ms(long_enough_ms)).value_or(-2);
}

TEST(ChildProcess, exit_codes_and_signals_are_told_as_a_shell_does) {
  EXPECT_EQ(run({"true"}), 0);
  EXPECT_EQ(run({"sh", "-c", "exit 7"}), 7);
  EXPECT_EQ(run({"sh", "-c", "kill -TERM $$"}), 128 + SIGTERM);
}

TEST(ChildProcess, a_program_that_is_not_there_is_named) {
  const auto child = ChildProcess::spawn({"/no/such/program"}, {});
  ASSERT_FALSE(child);
  EXPECT_EQ(child.error().code, TC_ERR_NOT_FOUND);
  EXPECT_NE(child.error().message.find("/no/such/program"), std::string::npos);
}

TEST(ChildProcess, output_of_both_kinds_is_captured) {
  auto child = ChildProcess::spawn({"sh", "-c", "echo one; echo two >&2"},
                                   {.environment = {}, .capture_output = true, .own_group = false});
  ASSERT_TRUE(child);
  ASSERT_TRUE(child->wait(Deadline::after_ms(long_enough_ms)));
  EXPECT_EQ(child->read_output(), "one\ntwo\n");
  EXPECT_EQ(child->output_fd(), -1);
}

TEST(ChildProcess, additions_to_the_environment_replace_what_was_there) {
  EXPECT_EQ(run({"sh", "-c", "test \"$HOME\" = elsewhere && test -n \"$PATH\""},
                {.environment = {"HOME=elsewhere"}, .capture_output = false, .own_group = false}),
            0);
}

TEST(ChildProcess, a_wait_ends_with_its_deadline) {
  auto child = ChildProcess::spawn({"sleep", "60"}, {});
  ASSERT_TRUE(child);
  EXPECT_FALSE(child->wait(Deadline::after_ms(30)));
  child->signal(SIGKILL);
  EXPECT_EQ(child->wait(Deadline::after_ms(long_enough_ms)), 128 + SIGKILL);
}

TEST(ChildProcess, a_child_ends_with_its_handle) {
  pid_t pid = 0;
  {
    auto child = ChildProcess::spawn({"sleep", "60"}, {});
    ASSERT_TRUE(child);
    pid = child->pid();
  }
  EXPECT_EQ(kill(pid, 0), -1);  // reaped as well, so nobody has that number
}

}  // namespace
}  // namespace tc::command
