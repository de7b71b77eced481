// SPDX-License-Identifier: Apache-2.0
//
// What a program asks of its system: processes, plug-ins, files with settings, and where its log goes.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spdlog/logger.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <filesystem>
#include <thread>

#include "base/bytes.h"
#include "base/file.h"
#include "base/log_sink.h"
#include "base/plugin.h"
#include "base/process.h"
#include "base/quiet_thread.h"
#include "base/testing/refused_calls.h"

namespace tc {
namespace {

using testing::HasSubstr;

// ---- Threads

TEST(QuietThread, runs_and_takes_no_signals) {
  sigset_t blocked;
  sigemptyset(&blocked);
  auto thread = quiet_thread([&] { pthread_sigmask(SIG_SETMASK, nullptr, &blocked); });
  ASSERT_TRUE(thread) << thread.error().message;
  thread->join();
  EXPECT_EQ(sigismember(&blocked, SIGTERM), 1);
  EXPECT_EQ(sigismember(&blocked, SIGSEGV), 0);
}

TEST(QuietThread, that_the_system_does_not_give_is_an_error_and_no_exception) {
  bool is_refused = false;
  Status started;
  std::thread([&] {
    is_refused = test::refuse_threads();
    if (!is_refused) return;
    auto thread = quiet_thread([] {});
    if (thread) return thread->join();
    started = fail(std::move(thread).error());
  }).join();
  if (!is_refused) GTEST_SKIP() << "no system call can be filtered here";
  ASSERT_FALSE(started);
  EXPECT_EQ(started.error().code, TC_ERR_IO);
  EXPECT_EQ(started.error().message, "a limit on tasks or memory leaves no thread for it");
}

// ---- Processes

Deadline long_enough() { return Deadline::after_ms(20'000); }

std::vector<std::string> shell(const std::string& script) { return {"sh", "-c", script}; }

int exit_code(const std::vector<std::string>& arguments, const SpawnOptions& options = {}) {
  const auto finished = run_program(arguments, options, long_enough());
  return finished ? finished->exit.as_shell() : -1;
}

std::string output_of(const std::string& script, SpawnOptions options = {}) {
  options.output = Output::captured;
  const auto finished = run_program(shell(script), options, long_enough());
  return finished ? finished->output : finished.error().message;
}

TEST(ChildProcess, exit_codes_and_signals_are_reported_as_a_shell_does) {
  EXPECT_EQ(exit_code({"true"}), 0);
  EXPECT_EQ(exit_code(shell("exit 7")), 7);
  EXPECT_EQ(exit_code(shell("kill -TERM $$")), 128 + SIGTERM);
}

TEST(ChildProcess, a_child_may_have_an_environment_of_its_own_alone) {
  EXPECT_EQ(output_of("echo ${HOME:-nothing}", {.environment = {"A=b"}, .inherit_environment = false}), "nothing\n");
  EXPECT_EQ(output_of("echo $A", {.environment = {"A=b"}, .inherit_environment = false}), "b\n");
}

TEST(ChildProcess, an_exit_status_is_said_in_words) {
  EXPECT_EQ((ExitStatus{3, 0}.text()), "ended with exit code 3");
  EXPECT_EQ((ExitStatus{0, SIGKILL}.text()), "was killed by signal 9 (Killed)");
  EXPECT_TRUE((ExitStatus{0, 0}.success()));
  EXPECT_FALSE((ExitStatus{0, SIGKILL}.success()));
}

TEST(ChildProcess, a_program_that_is_not_there_is_named) {
  const auto child = ChildProcess::spawn({"/no/such/program"});
  ASSERT_FALSE(child);
  EXPECT_EQ(child.error().code, TC_ERR_NOT_FOUND);
  EXPECT_EQ(child.error().message, "cannot run /no/such/program: No such file or directory");
}

TEST(ChildProcess, a_file_that_is_no_program_is_another_error) {
  const auto child = ChildProcess::spawn({"/etc/passwd"});
  ASSERT_FALSE(child);
  EXPECT_EQ(child.error().code, TC_ERR_IO);
}

TEST(ChildProcess, output_and_errors_are_captured_in_order) {
  auto child =
      ChildProcess::spawn(shell("echo one; echo two >&2"), {.output = Output::captured, .errors = Output::captured});
  ASSERT_TRUE(child);
  ASSERT_TRUE(child->wait(long_enough()));
  EXPECT_EQ(child->take_output(), "one\ntwo\n");
  EXPECT_EQ(child->output_fd(), -1);
}

TEST(ChildProcess, taking_the_output_of_a_silent_child_does_not_wait_for_it) {
  auto child = ChildProcess::spawn(shell("exec sleep 60"), {.output = Output::captured});
  ASSERT_TRUE(child);
  EXPECT_EQ(child->take_output(), "");
  EXPECT_FALSE(child->poll()) << "it was waited for";
}

TEST(ChildProcess, errors_can_be_discarded_while_output_is_captured) {
  EXPECT_EQ(output_of("echo one; echo two >&2", {.errors = Output::discarded}), "one\n");
}

TEST(ChildProcess, output_beyond_its_limit_is_dropped_and_blocks_nobody) {
  const auto text = output_of("head -c 1000000 /dev/zero; echo end >&2", {.output_limit = 1000});
  EXPECT_EQ(text.size(), 1000u);
}

TEST(ChildProcess, additions_to_the_environment_replace_what_was_there) {
  ::setenv("TC_TEST_INHERITED", "it is", 1);
  EXPECT_EQ(exit_code(shell("test \"$HOME\" = elsewhere && test \"$TC_TEST_INHERITED\" = 'it is'"),
                      {.environment = {"HOME=elsewhere"}}),
            0);
}

TEST(ChildProcess, input_is_what_it_is_given_or_nothing) {
  const auto directory = TemporaryDirectory::create();
  ASSERT_TRUE(directory);
  ASSERT_TRUE(write_file_atomically(directory->file("text"), as_bytes("given")));
  const Fd input(::open(directory->file("text").c_str(), O_RDONLY | O_CLOEXEC));
  EXPECT_EQ(output_of("cat", {.input = input.get()}), "given");
  EXPECT_EQ(output_of("cat", {.input = -1}), "");
}

TEST(ChildProcess, what_was_asked_for_runs_in_the_child_before_its_program) {
  EXPECT_EQ(output_of("pwd", {.before_exec = [] { return ::chdir("/") == 0; }}), "/\n");
  EXPECT_EQ(exit_code({"true"}, {.before_exec = [] { return false; }}), 127);
}

// Without it, a child of a thread that blocks signals could not be stopped by SIGTERM.
TEST(ChildProcess, blocked_signals_reach_the_child) {
  sigset_t all, before;
  sigfillset(&all);
  ASSERT_EQ(::pthread_sigmask(SIG_SETMASK, &all, &before), 0);
  EXPECT_EQ(exit_code(shell("kill -TERM $$; exit 3")), 128 + SIGTERM);
  sigset_t now;
  ASSERT_EQ(::pthread_sigmask(SIG_SETMASK, &before, &now), 0);
  EXPECT_TRUE(sigismember(&now, SIGTERM)) << "starting a child changed our own mask";
}

TEST(ChildProcess, a_group_of_its_own_ignores_no_signals) {
  const auto before = ::signal(SIGTERM, SIG_IGN);
  EXPECT_EQ(exit_code(shell("kill -TERM $$; exit 3")), 3);
  EXPECT_EQ(exit_code(shell("kill -TERM $$; exit 3"), {.own_group = true}), 128 + SIGTERM);
  ::signal(SIGTERM, before);
}

TEST(ChildProcess, a_wait_ends_with_its_deadline) {
  auto child = ChildProcess::spawn({"sleep", "60"});
  ASSERT_TRUE(child);
  EXPECT_FALSE(child->wait(Deadline::after_ms(30)));
  child->kill();
  const auto exit = child->wait(long_enough());
  ASSERT_TRUE(exit);
  EXPECT_EQ(exit->signal, SIGKILL);
}

TEST(ChildProcess, a_program_that_runs_too_long_is_killed) {
  const auto finished = run_program({"sleep", "60"}, {}, Deadline::after_ms(30));
  ASSERT_FALSE(finished);
  EXPECT_EQ(finished.error().code, TC_ERR_TIMEOUT);
}

TEST(ChildProcess, a_child_ends_with_its_handle) {
  pid_t pid = 0;
  {
    auto child = ChildProcess::spawn({"sleep", "60"});
    ASSERT_TRUE(child);
    pid = child->pid();
  }
  EXPECT_EQ(::kill(pid, 0), -1);  // reaped as well, so nobody has that number
}

// The write end of the pipe is in the grandchild: the read ends when it dies.
TEST(ChildProcess, a_group_ends_with_its_child) {
  const SpawnOptions options{.output = Output::captured, .own_group = true};
  auto child = ChildProcess::spawn(shell("sleep 60 & echo started"), options);
  ASSERT_TRUE(child);
  ASSERT_TRUE(child->wait(long_enough()));
  const auto deadline = long_enough();
  std::string text = child->take_output();
  for (; child->output_fd() >= 0 && !deadline.passed(); ::usleep(1000)) text += child->take_output();
  EXPECT_EQ(child->output_fd(), -1) << "the grandchild still runs";
  EXPECT_EQ(text, "started\n");
}

// ---- Files

size_t files_in(const TemporaryDirectory& directory) {
  return static_cast<size_t>(std::ranges::distance(std::filesystem::directory_iterator(directory.path())));
}

TEST(FileThatIsReplaced, has_the_new_bytes_and_nothing_beside_it) {
  const auto directory = TemporaryDirectory::create();
  ASSERT_TRUE(directory);
  const auto path = directory->file("text");
  for (const std::string_view text : {"one", "a longer one", ""}) {
    ASSERT_TRUE(write_file_atomically(path, as_bytes(text)));
    EXPECT_EQ(as_text(*read_file(path, 100)), text);
    EXPECT_EQ(files_in(*directory), 1u);
  }
}

TEST(FileThatIsReplaced, leaves_nothing_where_it_cannot_be_had) {
  const auto directory = TemporaryDirectory::create();
  ASSERT_TRUE(directory);
  std::filesystem::create_directories(directory->path() / "folder" / "inside");
  EXPECT_FALSE(write_file_atomically(directory->file("folder"), as_bytes("text")));
  EXPECT_EQ(files_in(*directory), 1u) << "the folder";
  EXPECT_FALSE(write_file_atomically(directory->file("missing") + "/text", as_bytes("text")));
}

// In /tmp another user may put a link under each name that he can guess.
TEST(FileThatIsReplaced, is_written_through_no_link_that_lies_there) {
  const auto directory = TemporaryDirectory::create();
  ASSERT_TRUE(directory);
  const auto path = directory->file("text"), victim = directory->file("victim");
  ASSERT_TRUE(write_file_atomically(victim, as_bytes("mine")));
  std::filesystem::create_symlink(victim, path);
  for (const auto& name : {std::to_string(::gettid()), std::to_string(::getpid())})
    if (!std::filesystem::is_symlink(path + "." + name + ".new"))
      std::filesystem::create_symlink(victim, path + "." + name + ".new");
  ASSERT_TRUE(write_file_atomically(path, as_bytes("text")));
  EXPECT_EQ(as_text(*read_file(victim, 100)), "mine");
  EXPECT_EQ(as_text(*read_file(path, 100)), "text");
  EXPECT_FALSE(std::filesystem::is_symlink(path));
}

TEST(NewFile, has_another_name_each_time_and_the_mode_that_was_asked_for) {
  const auto directory = TemporaryDirectory::create();
  ASSERT_TRUE(directory);
  const auto first = create_beside(directory->file("text"), 0600),
             second = create_beside(directory->file("text"), 0600);
  ASSERT_TRUE(first && second);
  EXPECT_NE(first->path, second->path);
  EXPECT_EQ(std::filesystem::status(first->path).permissions(), std::filesystem::perms(0600));
}

// ---- Plug-ins

TEST(Plugin, is_found_along_the_loaders_path_and_gives_its_functions) {
  const auto library = open_plugin("libm.so.6", "");
  ASSERT_TRUE(library) << library.error().message;
  EXPECT_TRUE(find_in_plugin(*library, "cos"));
  const auto missing = find_in_plugin(*library, "no_such_function");
  ASSERT_FALSE(missing);
  EXPECT_THAT(missing.error().message, HasSubstr("'no_such_function'"));
}

TEST(Plugin, that_is_missing_is_named_with_every_place_that_was_tried) {
  const auto library = open_plugin("libthreechains_none.so", "");
  ASSERT_FALSE(library);
  EXPECT_EQ(library.error().code, TC_ERR_UNSUPPORTED);
  EXPECT_THAT(library.error().message, HasSubstr("/bin/libthreechains_none.so"));
  EXPECT_THAT(library.error().message, HasSubstr("/lib/libthreechains_none.so"));
}

TEST(Plugin, with_a_wished_path_is_looked_for_nowhere_else) {
  const auto library = open_plugin("libm.so.6", "/no/such/place.so");
  ASSERT_FALSE(library);
  EXPECT_THAT(library.error().message, HasSubstr("/no/such/place.so"));
}

// ---- The log

struct Ends {
  Fd read, write;
};

Ends make_pipe() {
  int ends[2];
  EXPECT_EQ(pipe2(ends, O_CLOEXEC), 0);
  return {Fd(ends[0]), Fd(ends[1])};
}

Ends make_sockets() {
  int ends[2];
  EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  return {Fd(ends[0]), Fd(ends[1])};
}

spdlog::logger logger_to(const Fd& fd) {
  spdlog::logger log("test", std::make_shared<LogSink>(fd.get()));
  log.set_pattern("%v");
  return log;
}

std::string read_what_is_there(const Fd& fd) {
  std::string all;
  char buffer[65536];
  fcntl(fd.get(), F_SETFL, O_NONBLOCK);
  for (ssize_t got = 0; (got = ::read(fd.get(), buffer, sizeof buffer)) > 0;)
    all.append(buffer, static_cast<size_t>(got));
  return all;
}

TEST(LogSink, lines_arrive_in_order) {
  const auto ends = make_pipe();
  auto log = logger_to(ends.write);
  log.warn("one");
  log.warn("two");
  EXPECT_EQ(read_what_is_there(ends.read), "one\ntwo\n");
}

TEST(LogSink, words_of_several_lines_cannot_forge_entries) {
  const auto ends = make_pipe();
  auto log = logger_to(ends.write);
  log.warn("it says: one\nerror: two\n\nthree");
  log.warn("four");
  EXPECT_EQ(read_what_is_there(ends.read), "it says: one\n    error: two\n    \n    three\nfour\n");
}

void check_nobody_reads(const Ends& ends) {
  auto log = logger_to(ends.write);
  for (int i = 0; i < 100'000; ++i) log.warn("line {}", i);  // waits for ever if it waits at all
  const auto first = read_what_is_there(ends.read);
  EXPECT_TRUE(first.starts_with("line 0\nline 1\n"));
  const auto written = static_cast<size_t>(std::ranges::count(first, '\n'));
  log.warn("the next one");
  EXPECT_EQ(read_what_is_there(ends.read),
            fmt::format("{} lines of this log were dropped: nobody read the log\nthe next one\n", 100'000 - written));
}

TEST(LogSink, a_pipe_that_nobody_reads_costs_lines_which_are_counted_and_never_time) {
  check_nobody_reads(make_pipe());
}

TEST(LogSink, a_socket_that_nobody_reads_costs_lines_which_are_counted_and_never_time) {
  check_nobody_reads(make_sockets());
}

TEST(LogSink, a_reader_that_is_gone_does_not_end_the_process) {
  auto ends = make_pipe();
  auto log = logger_to(ends.write);
  ends.read.reset();
  log.warn("nobody hears this");
}

bool a_closed_pipe_is_pending() {
  sigset_t pending;
  EXPECT_EQ(sigpending(&pending), 0);
  return sigismember(&pending, SIGPIPE) == 1;
}

// The application may use the signal for its own pipes.
TEST(LogSink, a_reader_that_is_gone_adds_no_signal_and_takes_none_away) {
  auto ends = make_pipe();
  auto log = logger_to(ends.write);
  log.warn("somebody can hear this");
  ends.read.reset();
  sigset_t closed_pipe, before;
  sigemptyset(&closed_pipe);
  sigaddset(&closed_pipe, SIGPIPE);
  ASSERT_EQ(pthread_sigmask(SIG_BLOCK, &closed_pipe, &before), 0);
  log.warn("nobody hears this");
  EXPECT_FALSE(a_closed_pipe_is_pending());
  EXPECT_EQ(::write(ends.write.get(), "x", 1), -1);  // by the application
  log.warn("nor this");
  EXPECT_TRUE(a_closed_pipe_is_pending());
  constexpr timespec at_once{};
  sigtimedwait(&closed_pipe, nullptr, &at_once);
  EXPECT_FALSE(a_closed_pipe_is_pending());
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

TEST(LogSink, a_line_leaves_the_signals_of_its_thread_as_they_are) {
  auto ends = make_pipe();
  auto log = logger_to(ends.write);
  log.warn("one");
  sigset_t now;
  ASSERT_EQ(pthread_sigmask(SIG_SETMASK, nullptr, &now), 0);
  EXPECT_FALSE(sigismember(&now, SIGPIPE));
}

TEST(LogSink, a_line_too_long_for_one_write_is_cut_and_says_so) {
  const auto ends = make_pipe();
  logger_to(ends.write).warn("{}", std::string(10'000, 'x'));
  const auto line = read_what_is_there(ends.read);
  EXPECT_EQ(line.size(), size_t{PIPE_BUF});
  EXPECT_TRUE(line.ends_with("x ...\n"));
}

TEST(LogSink, a_descriptor_that_leads_elsewhere_later_is_followed) {
  const auto first = make_pipe(), second = make_pipe();
  auto log = logger_to(first.write);
  log.warn("here");
  ASSERT_GE(dup2(second.write.get(), first.write.get()), 0);
  log.warn("there");
  EXPECT_EQ(read_what_is_there(first.read), "here\n");
  EXPECT_EQ(read_what_is_there(second.read), "there\n");
}

}  // namespace
}  // namespace tc
