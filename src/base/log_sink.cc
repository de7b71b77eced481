// SPDX-License-Identifier: Apache-2.0
#include "base/log_sink.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>

#include "base/log_format.h"

namespace tc {

namespace {

// The reader of standard error may be gone. SIGPIPE must then not end the process, and other code must still get the
// signal. So this blocks it on this thread only.
class NoSigpipe {
 public:
  NoSigpipe() noexcept {
    sigemptyset(&pipe_);
    sigaddset(&pipe_, SIGPIPE);
    sigset_t pending;
    sigpending(&pending);
    was_pending_ = sigismember(&pending, SIGPIPE) == 1;
    pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
  }
  ~NoSigpipe() {
    constexpr timespec at_once{};
    if (!was_pending_) (void)sigtimedwait(&pipe_, nullptr, &at_once);
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  NoSigpipe(const NoSigpipe&) = delete;
  NoSigpipe& operator=(const NoSigpipe&) = delete;

 private:
  sigset_t pipe_, before_;
  bool was_pending_;
};

// In front of a line for systemd's journal: "<4>". Empty: there is none.
std::string_view priority_of(std::string_view line) noexcept {
  const bool has_one = line.size() > 2 && line[0] == '<' && line[1] >= '0' && line[1] <= '7' && line[2] == '>';
  return has_one ? line.substr(0, 3) : std::string_view();
}

// One entry of the log. A peer's text may have several lines. Each further line is indented, so that none can pass for
// an entry of its own. The journal takes each line for an entry: all have the priority of the first.
std::string indented(std::string_view formatted, std::string_view priority) {
  std::string entry;
  entry.reserve(formatted.size());
  for (size_t at = 0; at < formatted.size(); ++at) {
    entry += formatted[at];
    if (formatted[at] != '\n' || at + 1 == formatted.size()) continue;
    entry += priority;
    entry += "    ";
  }
  return entry;
}

std::string_view colour_of(spdlog::level::level_enum level) noexcept {
  switch (level) {
    case spdlog::level::err:
    case spdlog::level::critical: return "\033[31m\033[1m";
    case spdlog::level::warn: return "\033[33m\033[1m";
    case spdlog::level::info: return "\033[32m";
    default: return "\033[36m";
  }
}

}  // namespace

LogSink::~LogSink() { say_dropped(); }

void LogSink::look_at_descriptor() noexcept {
  struct stat now{};
  if (fstat(descriptor_, &now) != 0) {
    kind_ = Kind::unknown;
    return;
  }
  if (kind_ != Kind::unknown && now.st_dev == device_ && now.st_ino == inode_) return;
  device_ = now.st_dev;
  inode_ = now.st_ino;
  is_terminal_ = isatty(descriptor_) == 1;
  reopened_.reset();
  if (S_ISSOCK(now.st_mode)) {
    kind_ = Kind::socket;
  } else if (S_ISFIFO(now.st_mode) || S_ISCHR(now.st_mode)) {
    kind_ = Kind::stream;
    char path[64];
    *fmt::format_to_n(path, sizeof path - 1, "/proc/self/fd/{}", descriptor_).out = '\0';
    reopened_ = Fd(open(path, O_WRONLY | O_APPEND | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  } else {
    kind_ = Kind::file;
  }
}

bool LogSink::write(std::string_view line) noexcept {
  const NoSigpipe ignored;
  ssize_t wrote = -1;
  if (kind_ == Kind::socket) {
    wrote = ::send(descriptor_, line.data(), line.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  } else if (kind_ == Kind::stream && reopened_) {
    wrote = ::write(reopened_.get(), line.data(), line.size());
  } else {
    // A file never blocks. A stream that could not be opened again is polled first.
    pollfd room{.fd = descriptor_, .events = POLLOUT, .revents = 0};
    if (kind_ == Kind::file || (::poll(&room, 1, 0) == 1 && (room.revents & POLLOUT) != 0))
      wrote = ::write(descriptor_, line.data(), line.size());
  }
  return wrote >= 0;
}

void LogSink::say_dropped() noexcept {
  if (dropped_ == 0) return;
  try {
    const auto words = fmt::format("{} line{} of this log {} dropped: nobody read the log", dropped_,
                                   dropped_ == 1 ? "" : "s", dropped_ == 1 ? "was" : "were");
    const LogContext nothing{LogFields{}};
    if (write(entry_of({name_, spdlog::level::warn, words}))) dropped_ = 0;
  } catch (const std::exception&) {  // no memory for the sentence: the next line will say it
  }
}

std::string LogSink::entry_of(const spdlog::details::log_msg& message) {
  spdlog::memory_buf_t formatted;
  formatter_->format(message, formatted);
  const std::string_view text(formatted.data(), formatted.size());
  std::string line = indented(text, priority_of(text));
  if (line.size() > longest_log_line) line.replace(longest_log_line - 5, line.size(), " ...\n");
  return line;
}

std::string LogSink::in_colour(const spdlog::details::log_msg& message, std::string_view line) const {
  const auto begin = std::min(message.color_range_start, line.size()),
             end = std::min(message.color_range_end, line.size());
  return fmt::format("{}{}{}\033[0m{}", line.substr(0, begin), colour_of(message.level),
                     line.substr(begin, end - begin), line.substr(end));
}

void LogSink::sink_it_(const spdlog::details::log_msg& message) {
  std::string line = entry_of(message);
  name_.assign(message.logger_name.data(), message.logger_name.size());
  look_at_descriptor();
  if (is_terminal_) line = in_colour(message, line);
  say_dropped();
  if (dropped_ != 0 || !write(line)) ++dropped_;
}

void FunctionSink::log(const spdlog::details::log_msg& message) {
  const int level = message.level <= spdlog::level::debug  ? 0
                    : message.level == spdlog::level::info ? 1
                    : message.level == spdlog::level::warn ? 2
                                                           : 3;
  const auto entry = indented({message.payload.data(), message.payload.size()}, "");
  const std::lock_guard lock(one_at_a_time_);
  function_(level, entry.c_str());
}

}  // namespace tc
