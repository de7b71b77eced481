// SPDX-License-Identifier: Apache-2.0
#include "base/process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

extern char** environ;

namespace tc {

namespace {

constexpr int poll_interval_ms = 2;  // where no descriptor reports the end of a child
constexpr uint64_t longest_poll_ms = 60'000;

std::vector<char*> pointers_to(const std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (const auto& string : strings) pointers.push_back(const_cast<char*>(string.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

std::vector<std::string> environment_of(const SpawnOptions& options) {
  const auto& additions = options.environment;
  std::vector<std::string> all = additions;
  if (!options.inherit_environment) return all;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const auto name = text.substr(0, text.find('=') + 1);
    if (!std::ranges::any_of(additions, [&](const auto& addition) { return addition.starts_with(name); }))
      all.emplace_back(text);
  }
  return all;
}

// Everything that the child needs between vfork and exec, because nothing may be allocated there.
struct Start {
  char* const* arguments;
  char* const* environment;
  pid_t parent;
  int input, output, errors;  // become the standard three
  int report;                 // where errno goes when there is no exec
  const SpawnOptions& options;
};

// Resets signal handlers, because they would run on the memory that we share with our parent. An ignored signal stays
// ignored across exec (nohup), except in a group of its own.
void reset_signals(bool ignored_too) noexcept {
  for (int number = 1; number < NSIG; ++number) {
    struct sigaction action;
    if (::sigaction(number, nullptr, &action) != 0 || action.sa_handler == SIG_DFL) continue;
    if (action.sa_handler == SIG_IGN && !ignored_too) continue;
    action = {};
    action.sa_handler = SIG_DFL;
    ::sigaction(number, &action, nullptr);
  }
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

bool prepare(const Start& start) {
  if (start.options.own_group) ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != start.parent) return false;  // the parent died before the line above
  if (start.options.before_exec && !start.options.before_exec()) return false;
  return (start.input == STDIN_FILENO || ::dup2(start.input, STDIN_FILENO) >= 0) &&
         (start.output == STDOUT_FILENO || ::dup2(start.output, STDOUT_FILENO) >= 0) &&
         (start.errors == STDERR_FILENO || ::dup2(start.errors, STDERR_FILENO) >= 0);
}

[[noreturn]] void become(const Start& start) {
  if (!prepare(start)) ::_exit(127);
  reset_signals(start.options.own_group);
  ::execvpe(start.arguments[0], start.arguments, start.environment);
  const int error = errno;
  [[maybe_unused]] const auto written = ::write(start.report, &error, sizeof error);
  ::_exit(127);
}

// Uses vfork, because fork would copy the page tables of a node that may have gigabytes mapped. The child borrows our
// memory, and this thread waits until its exec.
pid_t start_child(const Start& start) {
  sigset_t all, before;
  sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  const pid_t pid = ::vfork();
  if (pid == 0) become(start);
  const int error = errno;
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  errno = error;
  return pid;
}

// The error that the child reported before its exec. 0: the exec succeeded and closed the pipe.
int read_report(int report) {
  int error = 0;
  ssize_t got = 0;
  do got = ::read(report, &error, sizeof error);
  while (got < 0 && errno == EINTR);
  return got == sizeof error ? error : 0;
}

struct Pipe {
  Fd read, write;
  static Result<Pipe> create() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return fail(TC_ERR_IO, "cannot make a pipe: {}", system_words(errno));
    return Pipe{Fd(ends[0]), Fd(ends[1])};
  }
};

int descriptor_for(Output output, int own, const Pipe& captured, const Fd& nowhere) {
  if (output == Output::inherited) return own;
  return output == Output::captured ? captured.write.get() : nowhere.get();
}

void reap(pid_t pid) noexcept {
  while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
  }
}

}  // namespace

std::string ExitStatus::text() const {
  if (signal != 0) return fmt::format("was killed by signal {} ({})", signal, ::strsignal(signal));
  return fmt::format("ended with exit code {}", code);
}

Result<ChildProcess> ChildProcess::spawn(const std::vector<std::string>& arguments, const SpawnOptions& options) {
  if (arguments.empty()) return fail(TC_ERR_INVALID, "there is no command to run");
  const bool captures = options.output == Output::captured || options.errors == Output::captured;
  Pipe captured;
  if (captures) {
    TC_ASSIGN(captured, Pipe::create());
  }
  TC_ASSIGN(auto report, Pipe::create());
  const Fd nowhere(::open("/dev/null", O_RDWR | O_CLOEXEC));
  const auto environment = environment_of(options);
  const auto argument_pointers = pointers_to(arguments), environment_pointers = pointers_to(environment);
  const pid_t pid = start_child({.arguments = argument_pointers.data(),
                                 .environment = environment_pointers.data(),
                                 .parent = ::getpid(),
                                 .input = options.input < 0 ? nowhere.get() : options.input,
                                 .output = descriptor_for(options.output, STDOUT_FILENO, captured, nowhere),
                                 .errors = descriptor_for(options.errors, STDERR_FILENO, captured, nowhere),
                                 .report = report.write.get(),
                                 .options = options});
  const int start_error = errno;
  report.write.reset();
  const int error = pid < 0 ? start_error : read_report(report.read.get());
  if (error != 0) {
    if (pid > 0) reap(pid);
    return fail(error == ENOENT ? TC_ERR_NOT_FOUND : TC_ERR_IO, "cannot run {}: {}", arguments[0], system_words(error));
  }
  if (captured.read) ::fcntl(captured.read.get(), F_SETFL, O_NONBLOCK);
  return ChildProcess(pid, std::move(captured.read), options);
}

ChildProcess::ChildProcess(pid_t pid, Fd output, const SpawnOptions& options) noexcept
    : pid_(pid),
      own_group_(options.own_group),
      output_limit_(options.output_limit),
      output_(std::move(output)),
      end_(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))) {}

ChildProcess::ChildProcess(ChildProcess&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      own_group_(other.own_group_),
      output_limit_(other.output_limit_),
      output_(std::move(other.output_)),
      end_(std::move(other.end_)),
      captured_(std::move(other.captured_)),
      exit_(other.exit_) {}

ChildProcess::~ChildProcess() {
  if (pid_ <= 0 || poll()) return;
  kill();
  reap(pid_);
}

void ChildProcess::capture() {
  char buffer[4096];
  while (output_) {
    const auto got = ::read(output_.get(), buffer, sizeof buffer);
    if (got > 0) {
      captured_.append(buffer, std::min(static_cast<size_t>(got), output_limit_ - captured_.size()));
    } else if (got == 0 || (errno != EINTR && errno != EAGAIN)) {
      output_.reset();
    } else if (errno == EAGAIN) {
      return;
    }
  }
}

std::string ChildProcess::take_output() {
  capture();
  return std::exchange(captured_, {});
}

void ChildProcess::signal(int number) noexcept {
  if (pid_ > 0 && !poll()) ::kill(pid_, number);
}

void ChildProcess::kill() noexcept {
  if (pid_ > 0 && !poll()) ::kill(own_group_ ? -pid_ : pid_, SIGKILL);
}

std::optional<ExitStatus> ChildProcess::poll() noexcept {
  if (exit_ || pid_ <= 0) return exit_;
  siginfo_t ended{};
  if (::waitid(P_PID, static_cast<id_t>(pid_), &ended, WEXITED | WNOHANG | WNOWAIT) != 0 || ended.si_pid == 0)
    return {};
  // Must come before the child is reaped: until then, no other process can have its number.
  if (own_group_) ::kill(-pid_, SIGKILL);
  reap(pid_);
  exit_ = ended.si_code == CLD_EXITED ? ExitStatus{ended.si_status, 0} : ExitStatus{0, ended.si_status};
  return exit_;
}

void ChildProcess::wait_for_event(Deadline deadline) {
  pollfd watched[] = {{end_.get(), POLLIN, 0}, {output_.get(), POLLIN, 0}};
  const auto left_ms = static_cast<int>(std::min(deadline.remaining_ns() / 1'000'000 + 1, longest_poll_ms));
  ::poll(watched, 2, end_ ? left_ms : std::min(left_ms, poll_interval_ms));
  capture();
}

std::optional<ExitStatus> ChildProcess::wait(Deadline deadline) {
  while (!poll() && !deadline.passed()) wait_for_event(deadline);
  capture();
  return poll();
}

Result<Finished> run_program(const std::vector<std::string>& arguments, const SpawnOptions& options,
                             Deadline deadline) {
  TC_ASSIGN(auto child, ChildProcess::spawn(arguments, options));
  const auto exit = child.wait(deadline);
  if (!exit) return fail(TC_ERR_TIMEOUT, "{} did not end in time and was killed", arguments[0]);
  return Finished{*exit, child.take_output()};
}

std::string replace_process(const std::string& program, const std::vector<std::string>& arguments) {
  ::execvp(program.c_str(), pointers_to(arguments).data());
  return system_words(errno);
}

}  // namespace tc
