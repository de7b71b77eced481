// SPDX-License-Identifier: Apache-2.0
#include "base/log_sink.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <spdlog/logger.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <climits>

namespace tc {
namespace {

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
