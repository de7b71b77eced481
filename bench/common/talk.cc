// SPDX-License-Identifier: Apache-2.0
#include "common/talk.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace tc::bench {

Status Talk::say(const std::string& line) {
  const auto text = line + "\n";
  if (::send(fd_.get(), text.data(), text.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(text.size())) return {};
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
    pollfd wait{fd_.get(), POLLIN, 0};
    const auto patience_ms = meanwhile ? 0 : std::min<uint64_t>(deadline.remaining_ns() / 1'000'000 + 1, 60'000);
    if (::poll(&wait, 1, static_cast<int>(patience_ms)) > 0) {
      char chunk[4096];
      const auto got = ::recv(fd_.get(), chunk, sizeof chunk, 0);
      if (got <= 0) return fail(TC_ERR_DISCONNECTED, "the benchmark's other process ended");
      buffer_.append(chunk, static_cast<size_t>(got));
    } else if (deadline.passed()) {
      return fail(TC_ERR_TIMEOUT, "the benchmark's other process does not answer");
    }
  }
}

Result<std::unique_ptr<Partner>> Partner::start(std::vector<std::string> arguments,
                                                const std::function<bool()>& before_exec) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    return fail(TC_ERR_IO, "socketpair: {}", std::strerror(errno));
  Fd ours(ends[0]);
  const Fd theirs(ends[1]);
  arguments.insert(arguments.begin(), "/proc/self/exe");
  TC_ASSIGN(auto process, ChildProcess::spawn(arguments, {.input = theirs.get(), .before_exec = before_exec}));
  return std::unique_ptr<Partner>(new Partner(std::move(process), std::move(ours)));
}

const std::string& Partner::end() {
  if (!end_.empty()) return end_;
  const auto exit = process_.poll();
  if (!exit) return end_;
  end_ = exit->text();
  auto last = talk_.hear(Deadline::after_ms(0));
  while (last) last = talk_.hear(Deadline::after_ms(0));
  if (last.error().code == TC_ERR_INTERNAL) end_ += ": " + last.error().message;
  return end_;
}

int run_as_partner(const std::function<Status(Talk&)>& serve) {
  Talk talk{Fd(STDIN_FILENO)};  // the partner's end of the socket pair
  const auto served = serve(talk);
  if (served) return 0;
  (void)talk.say("error " + served.error().message);
  return 1;
}

}  // namespace tc::bench
