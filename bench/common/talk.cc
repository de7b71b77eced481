// SPDX-License-Identifier: Apache-2.0
#include "common/talk.h"

#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

namespace tc::bench {

namespace {
constexpr int partner_fd = 3;
}

Talk::~Talk() { ::close(fd_); }

Status Talk::say(const std::string& line) {
  const auto text = line + "\n";
  if (::send(fd_, text.data(), text.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(text.size())) return {};
  return fail(TC_ERR_DISCONNECTED, "the benchmark's other process is gone: {}", std::strerror(errno));
}

Result<std::string> Talk::hear(Deadline deadline, const std::function<void()>& meanwhile) {
  while (true) {
    if (const auto end = buffer_.find('\n'); end != std::string::npos) {
      auto line = buffer_.substr(0, end);
      buffer_.erase(0, end + 1);
      if (line.starts_with("error ")) return fail(TC_ERR_INTERNAL, "the benchmark's other process: {}", line.substr(6));
      return line;
    }
    if (meanwhile) meanwhile();
    pollfd wait{fd_, POLLIN, 0};
    const auto patience_ms = meanwhile ? 0 : std::min<uint64_t>(deadline.remaining_ns() / 1'000'000 + 1, 60'000);
    if (::poll(&wait, 1, static_cast<int>(patience_ms)) > 0) {
      char chunk[4096];
      const auto got = ::recv(fd_, chunk, sizeof chunk, 0);
      if (got <= 0) return fail(TC_ERR_DISCONNECTED, "the benchmark's other process ended");
      buffer_.append(chunk, static_cast<size_t>(got));
    } else if (deadline.passed()) {
      return fail(TC_ERR_TIMEOUT, "the benchmark's other process does not answer");
    }
  }
}

Result<std::unique_ptr<Partner>> Partner::start(const std::vector<std::string>& arguments,
                                                const std::function<bool()>& prepare) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    return fail(TC_ERR_IO, "socketpair: {}", std::strerror(errno));
  const pid_t pid = ::fork();
  if (pid < 0) return fail(TC_ERR_IO, "fork: {}", std::strerror(errno));
  if (pid == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (prepare && !prepare()) _exit(127);
    if (::dup2(ends[1], partner_fd) != partner_fd) _exit(127);
    std::vector<char*> argv{const_cast<char*>("ifunc")};
    for (const auto& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
    argv.push_back(nullptr);
    ::execv("/proc/self/exe", argv.data());
    _exit(127);
  }
  ::close(ends[1]);
  return std::unique_ptr<Partner>(new Partner(pid, ends[0]));
}

Partner::~Partner() {
  if (pid_ == 0) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

const std::string& Partner::end() {
  int state = 0;
  if (pid_ == 0 || ::waitpid(pid_, &state, WNOHANG) != pid_) return end_;
  pid_ = 0;
  end_ = WIFSIGNALED(state) ? fmt::format("was killed by signal {} ({})", WTERMSIG(state), strsignal(WTERMSIG(state)))
                            : fmt::format("ended with exit code {}", WEXITSTATUS(state));
  auto last = talk_.hear(Deadline::after_ms(0));
  while (last) last = talk_.hear(Deadline::after_ms(0));
  if (last.error().code == TC_ERR_INTERNAL) end_ += ": " + last.error().message;
  return end_;
}

}  // namespace tc::bench
