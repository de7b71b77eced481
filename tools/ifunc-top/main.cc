// SPDX-License-Identifier: Apache-2.0
//
// The program behind `ifunc top`. It links ncurses, which no other command has to load. `ifunc` has checked the arguments.
#include <fmt/format.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <clocale>
#include <cstdio>
#include <cstdlib>
#include <variant>

#include "ifunc-top/screen.h"
#include "ifunc-top/view.h"
#include "ifunc-top/watch.h"
#include "ifunc/top_options.h"
#include "ifunc/usage.h"

namespace tc::top {
namespace {

using command::TopOptions;
namespace exit_codes = command::exit_codes;

// How often the screen is drawn where nothing happens: pauses are counted down.
constexpr int longest_wait_ms = 1000;
constexpr size_t width_of_files = 132;

// ---- As text

void print(const std::vector<Line>& lines) {
  const bool has_utf8 = takes_utf8();
  for (const auto& line : lines) {
    const auto text = text_of(line);
    fmt::print("{}\n", has_utf8 ? text : only_ascii(text));
  }
  std::fflush(stdout);
}

size_t width_of_output() {
  winsize size{};
  return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col != 0 ? size.ws_col : width_of_files;
}

void print_errors(const std::vector<Seen>& nodes) {
  for (const auto& node : nodes)
    if (node.error) fmt::print(stderr, "ifunc top: {}: {}\n", node.address, printable(*node.error));
}

// Two looks, as rates are what has changed between them.
int print_once(Watch& watch, View& view) {
  watch.wait_for_looks(2);
  auto nodes = watch.seen();
  print_errors(nodes);
  for (auto& node : nodes) node.again_in_s.reset();
  view.show(std::move(nodes));
  print(view.everything(width_of_output(), command::timestamp()));
  return view.exit_code();
}

// ---- On the screen

// Blocked in all threads, and read where the program waits: none comes between ncurses and its terminal.
class Signals {
 public:
  Signals() {
    sigemptyset(&set_);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGWINCH, SIGTSTP, SIGCONT}) sigaddset(&set_, signal);
    pthread_sigmask(SIG_BLOCK, &set_, nullptr);
    fd_ = Fd(::signalfd(-1, &set_, SFD_CLOEXEC | SFD_NONBLOCK));
  }
  int fd() const noexcept { return fd_.get(); }
  // 0: none.
  int take() {
    signalfd_siginfo info{};
    return ::read(fd_.get(), &info, sizeof info) == sizeof info ? static_cast<int>(info.ssi_signo) : 0;
  }
  // Stops this process, as the terminal's user wants; returns when it goes on.
  static void stop() {
    sigset_t stop;
    sigemptyset(&stop);
    sigaddset(&stop, SIGTSTP);
    ::signal(SIGTSTP, SIG_DFL);
    ::raise(SIGTSTP);
    pthread_sigmask(SIG_UNBLOCK, &stop, nullptr);
    pthread_sigmask(SIG_BLOCK, &stop, nullptr);
  }

 private:
  sigset_t set_{};
  Fd fd_;
};

class Program {
 public:
  Program(Watch& watch, View& view, Signals& signals, Screen& screen)
      : watch_(watch), view_(view), signals_(signals), screen_(screen) {}

  int run() {
    view_.show(watch_.seen());
    while (true) {
      screen_.draw(view_.lines(screen_.size(), command::timestamp()));
      if (!wait() || !take_signals() || !take_keys()) return view_.exit_code();
      watch_.take();
      if (!view_.is_paused()) view_.show(watch_.seen());
    }
  }

 private:
  // False: the terminal is gone.
  bool wait() {
    pollfd waited[]{{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0},
                    {.fd = signals_.fd(), .events = POLLIN, .revents = 0},
                    {.fd = watch_.fd(), .events = POLLIN, .revents = 0}};
    if (::poll(waited, std::size(waited), longest_wait_ms) < 0) return errno == EINTR;
    return (waited[0].revents & (POLLHUP | POLLERR | POLLNVAL)) == 0;
  }

  // False: the program has to end.
  bool take_signals() {
    while (const int signal = signals_.take()) switch (signal) {
        case SIGWINCH: screen_.resize(); break;
        case SIGCONT: screen_.resume(); break;
        case SIGTSTP:
          screen_.leave();
          Signals::stop();
          screen_.resume();
          break;
        default: return false;
      }
    return true;
  }

  // False: the user wants to leave.
  bool take_keys() {
    for (int key = screen_.key(); key != Key::none; key = screen_.key())
      if (!view_.press(key)) return false;
    watch_.set_interval(view_.interval_s());
    return true;
  }

  Watch& watch_;
  View& view_;
  Signals& signals_;
  Screen& screen_;
};

// ---- The command

using Askers = std::vector<std::pair<std::string, command::Asker>>;
// The exit code where that fails.
std::variant<Askers, int> make_askers(const TopOptions& options) {
  const auto addresses = command::resolve_all(options.addresses);
  if (!addresses) {
    fmt::print(stderr, "ifunc top: {}\n", addresses.error().message);
    return exit_codes::usage;
  }
  Askers askers;
  for (const auto& address : *addresses) {
    auto asker = command::Asker::create(options);
    if (!asker) {
      fmt::print(stderr, "ifunc top: {}\n", asker.error().message);
      return exit_codes::bad_configuration;
    }
    askers.emplace_back(address, std::move(*asker));
  }
  return askers;
}

// Empty: `ifunc top` was told to print text, or there is no terminal.
Result<std::unique_ptr<Screen>> open_screen(const TopOptions& options) {
  if (options.once || ::isatty(STDOUT_FILENO) == 0 || ::isatty(STDIN_FILENO) == 0) return std::unique_ptr<Screen>();
  return Screen::open();
}

int watch(TopOptions options) {
  View view(options.interval_s, options.sort);
  const bool has_terminal = ::isatty(STDERR_FILENO) != 0;
  // Lines of a log would be written across the screen.
  if (has_terminal && !options.once) options.log = "off";
  Signals signals;
  auto askers = make_askers(options);
  if (const auto* const code = std::get_if<int>(&askers)) return *code;
  auto screen = open_screen(options);
  if (!screen) fmt::print(stderr, "ifunc top: {}; this is one look, as text\n", screen.error().message);
  auto watch = Watch::start(std::move(std::get<Askers>(askers)), options.interval_s);
  if (!watch) {
    fmt::print(stderr, "ifunc top: {}\n", watch.error().message);
    return 1;
  }
  const bool is_drawn = screen && *screen;
  const int code = is_drawn ? Program(*watch, view, signals, **screen).run() : print_once(*watch, view);
  if (is_drawn) screen->reset();
  // A thread may wait for a node for as long as --timeout says. Nobody needs the answer any more.
  if (!watch->finish()) std::_Exit(code);
  return code;
}

int run(int argc, char** argv) {
  std::setlocale(LC_CTYPE, "");
  int exit_code = 0;
  CLI::App app("", "ifunc");
  app.require_subcommand(1);
  auto* const sub = app.add_subcommand("top", "");
  TopOptions options;
  options.add_to(*sub);
  sub->callback([&] { exit_code = watch(options); });
  return command::parse_and_run(app, argc, argv, exit_code);
}

}  // namespace
}  // namespace tc::top

int main(int argc, char** argv) {
  return tc::command::run_program_main("ifunc top", [&] { return tc::top::run(argc, argv); });
}
