// SPDX-License-Identifier: Apache-2.0
//
// A child of this process that does not outlive it: the kernel kills it when we die, and destroying the handle
// stops it. One thread only.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"

namespace tc::command {

struct SpawnOptions {
  std::vector<std::string> environment;  // "NAME=VALUE", added to ours
  bool capture_output = false;           // stdout and stderr go to output_fd() instead of ours
  bool own_group = false;                // out of reach of the terminal's Ctrl-C
};

class ChildProcess {
 public:
  // Looks `arguments[0]` up along PATH. TC_ERR_NOT_FOUND or TC_ERR_IO with the system's words.
  static Result<ChildProcess> spawn(const std::vector<std::string>& arguments, const SpawnOptions& options);

  ChildProcess(ChildProcess&& other) noexcept;
  ChildProcess& operator=(ChildProcess&&) = delete;
  // Kills it when it still runs.
  ~ChildProcess();

  pid_t pid() const noexcept { return pid_; }
  // The reading end, not blocking; -1 when output is not captured or has ended.
  int output_fd() const noexcept { return output_; }
  // What came since the last call; notes the end of the output.
  std::string read_output();

  void signal(int number) noexcept;
  // How it ended, in the shell's numbers (128 + signal); nothing while it runs. Does not wait.
  std::optional<int> poll() noexcept;
  // Waits until it has ended; nothing when the deadline passed first.
  std::optional<int> wait(Deadline deadline) noexcept;

 private:
  ChildProcess(pid_t pid, int output) noexcept : pid_(pid), output_(output) {}

  pid_t pid_;
  int output_;
  std::optional<int> exit_code_;
};

}  // namespace tc::command
