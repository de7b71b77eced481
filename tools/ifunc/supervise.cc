// SPDX-License-Identifier: Apache-2.0
//
// `ifunc serve --supervise`: a node as a child process, which is started again when it dies.
#include "ifunc/supervise.h"

#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <optional>

#include "base/clock.h"
#include "base/log_sink.h"
#include "base/process.h"
#include "ifunc/service.h"

namespace tc::command {

namespace {

constexpr uint64_t first_pause_ms = 100;
constexpr uint64_t longest_pause_ms = 30'000;
// A node that has lived so long was well: what it dies of then is news.
constexpr uint64_t well_after_ms = 60'000;
// What a node says of a configuration that is wrong: to start it again would change nothing.
constexpr int exit_code_of_bad_usage = 2;
// Of what a node said last, for the line about its death.
constexpr size_t last_words_bytes = 1024;
constexpr uint64_t longest_wait_ms = 60'000;

class Supervision {
 public:
  explicit Supervision(const ServeOptions& options) : log_(make_service_log(options)) {}

  Result<int> run(const std::vector<std::string>& arguments) {
    sigset_t set;
    sigemptyset(&set);
    for (const int number : {SIGCHLD, SIGINT, SIGTERM, SIGHUP}) sigaddset(&set, number);
    sigprocmask(SIG_BLOCK, &set, nullptr);
    signals_ = Fd(::signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC));
    if (!signals_) return fail(TC_ERR_IO, "cannot watch for signals: {}", std::strerror(errno));
    ::signal(SIGPIPE, SIG_IGN);  // the reader of standard error may be gone
    uint64_t pause_ms = first_pause_ms;
    while (true) {
      const auto begun_ns = now_ns();
      auto node = ChildProcess::spawn(arguments, {.errors = Output::captured, .own_group = true});
      if (node) {
        const auto exit = wait_for_end(*node);
        const bool is_misused =
            exit.signal == 0 && (exit.code == exit_code_of_bad_usage || exit.code == exit_bad_configuration);
        if (has_to_stop_ || exit.success() || is_misused) return exit.as_shell();
        if (now_ns() - begun_ns >= well_after_ms * 1'000'000) pause_ms = first_pause_ms;
        log_->error("ifunc serve --supervise: the node {} and is started again in {} ms; its last words: {}",
                    exit.text(), pause_ms, last_words());
      } else {  // a limit of processes, perhaps
        log_->error("ifunc serve --supervise: the node is tried again in {} ms: {}", pause_ms, node.error().message);
      }
      const auto pause = Deadline::after_ms(pause_ms);
      while (!pause.passed() && !has_to_stop_) wait_for_event(nullptr, pause);
      if (has_to_stop_) return 0;  // as a node that is told to stop
      pause_ms = std::min(pause_ms * 2, longest_pause_ms);
    }
  }

 private:
  ExitStatus wait_for_end(ChildProcess& node) {
    said_last_.clear();
    std::optional<ExitStatus> exit;
    while (!(exit = node.poll())) wait_for_event(&node, Deadline::after_ms(longest_wait_ms));
    relay(node);
    return *exit;
  }

  void wait_for_event(ChildProcess* node, Deadline deadline) {
    const int output = node != nullptr ? node->output_fd() : -1;
    pollfd watched[] = {{signals_.get(), POLLIN, 0}, {output, POLLIN, 0}};  // a negative one is ignored
    const auto left_ms = std::min<uint64_t>(deadline.remaining_ns() / 1'000'000 + 1, longest_wait_ms);
    ::poll(watched, 2, static_cast<int>(left_ms));
    signalfd_siginfo signal{};
    while (::read(signals_.get(), &signal, sizeof signal) == sizeof signal)
      if (signal.ssi_signo != SIGCHLD) pass_on(static_cast<int>(signal.ssi_signo), node);
    if (node != nullptr) relay(*node);
  }

  void pass_on(int signal, ChildProcess* node) {
    has_to_stop_ = has_to_stop_ || signal != SIGHUP;
    if (node != nullptr) node->signal(signal);
  }

  // What nobody reads is dropped, as a node drops lines of its log: a supervisor that waits would not supervise.
  void relay(ChildProcess& node) {
    const auto text = node.take_output();
    for (size_t at = 0; at < text.size(); at += longest_log_line) {
      pollfd room{.fd = STDERR_FILENO, .events = POLLOUT, .revents = 0};
      if (::poll(&room, 1, 0) != 1 || (room.revents & POLLOUT) == 0) break;
      const auto part = std::string_view(text).substr(at, longest_log_line);
      [[maybe_unused]] const auto written = ::write(STDERR_FILENO, part.data(), part.size());
    }
    said_last_ += text;
    if (said_last_.size() > last_words_bytes) said_last_.erase(0, said_last_.size() - last_words_bytes);
  }

  // The last line of it.
  std::string_view last_words() const {
    std::string_view words(said_last_);
    while (words.ends_with('\n')) words.remove_suffix(1);
    if (const auto end = words.rfind('\n'); end != std::string_view::npos) words.remove_prefix(end + 1);
    return words.empty() ? "none" : words;
  }

  const std::shared_ptr<spdlog::logger> log_;
  Fd signals_;
  bool has_to_stop_ = false;
  std::string said_last_;
};

}  // namespace

Result<int> supervise(ServeOptions options) {
  // Each node reads the file anew, and says what is wrong with it. Here it tells how the log is to be.
  ServeOptions known = options;
  (void)known.read_config_file();
  Supervision supervision(known);
  // The node's standard error is a pipe, which says nothing about the journal.
  if (log_format_of(known) == LogFormat::journal) options.set("log-format", "journal");
  options.supervise = false;
  std::error_code error;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) return fail(TC_ERR_IO, "cannot find this program's own file: {}", error.message());
  std::vector<std::string> arguments = {self.string(), "serve"};
  for (auto& argument : options.arguments()) arguments.push_back(std::move(argument));
  return supervision.run(arguments);
}

}  // namespace tc::command
