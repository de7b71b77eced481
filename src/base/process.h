// SPDX-License-Identifier: Apache-2.0
//
// Child processes: the one place that starts programs.
//
// A child does not outlive its parent. The kernel kills it when the thread that started it ends, and the destructor of
// ChildProcess kills it, too. A child starts with no signal blocked. It has only the three standard descriptors, and
// those that were left open across exec.
//
// Threads: any thread may start a child. One thread uses a ChildProcess.
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/fd.h"
#include "base/result.h"

namespace tc {

// Where the child's output goes. Output and errors that are both captured arrive in one stream, in order.
enum class Output { inherited, discarded, captured };

struct SpawnOptions {
  std::vector<std::string> environment = {};  // "NAME=VALUE": replaces our variable of that name, or adds one
  bool inherit_environment = true;            // false: the child has `environment` alone
  int input = STDIN_FILENO;                   // becomes standard input; -1: /dev/null
  Output output = Output::inherited;
  Output errors = Output::inherited;
  // Limit of the captured bytes that take_output() has not taken yet. Further output is read and dropped, so that a
  // child which prints without end neither blocks nor fills our memory.
  size_t output_limit = size_t{1} << 20;
  // Gives the child a process group of its own. kill() and the child's end then kill the whole group. The terminal's
  // Ctrl-C does not reach it. Signals that we ignore have their default action again.
  bool own_group = false;
  // Runs in the child before its program. False ends the child. At that point the child shares our memory, and other
  // threads may hold locks. So it may only make system calls, and must not allocate.
  std::function<bool()> before_exec = {};
};

// How a process ended.
struct ExitStatus {
  int code = 0;
  int signal = 0;  // the signal that killed it; 0: it ended by itself
  bool success() const noexcept { return code == 0 && signal == 0; }
  // The number that a shell reports: the exit code, or 128 + signal.
  int as_shell() const noexcept { return signal != 0 ? 128 + signal : code; }
  // "was killed by signal 9 (Killed)", "ended with exit code 1".
  std::string text() const;
};

class ChildProcess {
 public:
  // Looks `arguments[0]` up along PATH unless it holds a slash. TC_ERR_NOT_FOUND: there is no such program. TC_ERR_IO:
  // it could not be started for another reason.
  static Result<ChildProcess> spawn(const std::vector<std::string>& arguments, const SpawnOptions& options = {});

  ChildProcess(ChildProcess&& other) noexcept;
  ChildProcess& operator=(ChildProcess&&) = delete;
  // Kills the child if it still runs.
  ~ChildProcess();

  pid_t pid() const noexcept { return pid_; }
  // Readable when the child has written output. -1: output is not captured, or has ended.
  int output_fd() const noexcept { return output_.get(); }
  // The output that was captured since the last call. Does not wait.
  std::string take_output();

  // Sends the signal to the child, not to its group.
  void signal(int number) noexcept;
  void kill() noexcept;
  // How the child ended. Nothing: it still runs. Does not wait.
  std::optional<ExitStatus> poll() noexcept;
  // Waits until the child has ended, and captures its output meanwhile. Nothing: the deadline passed first.
  std::optional<ExitStatus> wait(Deadline deadline);

 private:
  ChildProcess(pid_t pid, Fd output, const SpawnOptions& options) noexcept;
  void capture();
  void wait_for_event(Deadline deadline);

  pid_t pid_;
  bool own_group_;
  size_t output_limit_;
  Fd output_;
  Fd end_;  // a pidfd, readable once the child has ended; empty where the kernel has none
  std::string captured_;
  std::optional<ExitStatus> exit_;
};

struct Finished {
  ExitStatus exit;
  std::string output;  // captured
};

// Runs a program to its end. TC_ERR_TIMEOUT: the deadline passed first, and the program was killed.
Result<Finished> run_program(const std::vector<std::string>& arguments, const SpawnOptions& options = {},
                             Deadline deadline = Deadline::never());

// Replaces this process by `program`, which is looked up along PATH unless it holds a slash. `arguments` begins with
// the program's name. Returns only if this fails, with the system's error.
std::string replace_process(const std::string& program, const std::vector<std::string>& arguments);

}  // namespace tc
