// SPDX-License-Identifier: Apache-2.0
#include "ifunc/child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace tc::command {
namespace {

std::vector<char*> pointers_to(const std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (const auto& string : strings) pointers.push_back(const_cast<char*>(string.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

std::vector<std::string> environment_with(const std::vector<std::string>& additions) {
  std::vector<std::string> all = additions;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const auto name = text.substr(0, text.find('=') + 1);
    bool replaced = false;
    for (const auto& addition : additions) replaced = replaced || addition.starts_with(name);
    if (!replaced) all.emplace_back(text);
  }
  return all;
}

// In the child, between fork and exec: nothing that allocates. Writes errno to `report` when it fails.
[[noreturn]] void become(char* const* arguments, char* const* environment, pid_t parent, int output, bool own_group,
                         int report) {
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  if (own_group) setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(127);  // it died before the line above
  if (output >= 0) {
    dup2(output, STDOUT_FILENO);
    dup2(output, STDERR_FILENO);
  }
  execvpe(arguments[0], arguments, environment);
  const int error = errno;
  [[maybe_unused]] const auto written = write(report, &error, sizeof error);
  _exit(127);
}

// What the child reported before its exec; 0 when the exec succeeded and closed the pipe.
int read_report(int report) {
  int error = 0;
  ssize_t got = 0;
  do got = read(report, &error, sizeof error);
  while (got < 0 && errno == EINTR);
  return got == sizeof error ? error : 0;
}

void close_both(const int (&ends)[2]) {
  for (const int end : ends)
    if (end >= 0) close(end);
}

}  // namespace

Result<ChildProcess> ChildProcess::spawn(const std::vector<std::string>& arguments, const SpawnOptions& options) {
  if (arguments.empty()) return fail(TC_ERR_INVALID, "no command to run");
  int output[2] = {-1, -1};
  int report[2] = {-1, -1};
  if ((options.capture_output && pipe2(output, O_CLOEXEC) != 0) || pipe2(report, O_CLOEXEC) != 0) {
    const int error = errno;
    close_both(output);
    return fail(TC_ERR_IO, "cannot make a pipe for {}: {}", arguments[0], std::strerror(error));
  }
  const auto environment = environment_with(options.environment);
  const auto argument_pointers = pointers_to(arguments);
  const auto environment_pointers = pointers_to(environment);
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid == 0)
    become(argument_pointers.data(), environment_pointers.data(), parent, output[1], options.own_group, report[1]);
  const int fork_error = errno;
  if (output[1] >= 0) close(output[1]);
  close(report[1]);
  const int error = pid < 0 ? fork_error : read_report(report[0]);
  close(report[0]);
  if (error != 0) {
    if (output[0] >= 0) close(output[0]);
    if (pid > 0) waitpid(pid, nullptr, 0);
    return fail(error == ENOENT ? TC_ERR_NOT_FOUND : TC_ERR_IO, "cannot run {}: {}", arguments[0],
                std::strerror(error));
  }
  if (output[0] >= 0) fcntl(output[0], F_SETFL, O_NONBLOCK);
  return ChildProcess(pid, output[0]);
}

ChildProcess::ChildProcess(ChildProcess&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)), output_(std::exchange(other.output_, -1)), exit_code_(other.exit_code_) {}

ChildProcess::~ChildProcess() {
  if (output_ >= 0) close(output_);
  if (pid_ <= 0 || exit_code_) return;
  signal(SIGKILL);
  waitpid(pid_, nullptr, 0);
}

std::string ChildProcess::read_output() {
  std::string text;
  char buffer[4096];
  while (output_ >= 0) {
    const ssize_t got = read(output_, buffer, sizeof buffer);
    if (got > 0) {
      text.append(buffer, static_cast<size_t>(got));
    } else if (got < 0 && errno == EINTR) {
      continue;
    } else {
      if (got == 0 || errno != EAGAIN) close(std::exchange(output_, -1));
      break;
    }
  }
  return text;
}

void ChildProcess::signal(int number) noexcept {
  if (pid_ > 0 && !poll()) kill(pid_, number);
}

std::optional<int> ChildProcess::poll() noexcept {
  if (exit_code_ || pid_ <= 0) return exit_code_;
  int status = 0;
  if (waitpid(pid_, &status, WNOHANG) != pid_) return {};
  exit_code_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return exit_code_;
}

std::optional<int> ChildProcess::wait(Deadline deadline) noexcept {
  while (!poll() && !deadline.passed()) ::poll(nullptr, 0, 5);
  return poll();
}

}  // namespace tc::command
