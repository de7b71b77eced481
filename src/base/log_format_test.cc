// SPDX-License-Identifier: Apache-2.0
#include "base/log_format.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <spdlog/logger.h>
#include <spdlog/sinks/ostream_sink.h>
#include <sys/stat.h>
#include <unistd.h>

#include <climits>
#include <sstream>

#include "base/log_sink.h"

namespace tc {
namespace {

// 2026-11-26 22:05:01.250 UTC
constexpr timespec some_time{.tv_sec = 1'795'730'701, .tv_nsec = 250'999'999};

LogLine line_of(std::string_view message) {
  return {.time = some_time, .seconds_east = 0, .level = spdlog::level::warn, .node = "node3", .message = message};
}

std::string written(LogFormat format, const LogLine& line, size_t room = longest_log_line) {
  std::string out(room, '\0');
  out.resize(write_log_line(out, format, line));
  return out;
}

// Throws on what is no JSON, and on bytes that are no UTF-8.
nlohmann::json parsed(const std::string& line) {
  EXPECT_TRUE(line.ends_with("}\n")) << line;
  EXPECT_EQ(line.find('\n'), line.size() - 1) << line;
  return nlohmann::json::parse(line);
}

TEST(LogFormat, a_line_of_text_begins_with_date_time_and_zone) {
  auto line = line_of("hello");
  EXPECT_EQ(written(LogFormat::text, line), "2026-11-26T22:05:01.250+00:00 node3 warning: hello\n");
  line.seconds_east = 3600;
  EXPECT_EQ(written(LogFormat::text, line), "2026-11-26T23:05:01.250+01:00 node3 warning: hello\n");
  line.seconds_east = 5 * 3600 + 45 * 60;
  EXPECT_EQ(written(LogFormat::text, line), "2026-11-27T03:50:01.250+05:45 node3 warning: hello\n");
  line.seconds_east = -(9 * 3600 + 30 * 60);
  EXPECT_EQ(written(LogFormat::text, line), "2026-11-26T12:35:01.250-09:30 node3 warning: hello\n");
}

TEST(LogFormat, a_line_for_the_journal_begins_with_the_priority_and_has_no_time) {
  auto line = line_of("hello");
  const auto at = [&](spdlog::level::level_enum level) {
    return line.level = level, written(LogFormat::journal, line);
  };
  EXPECT_EQ(at(spdlog::level::critical), "<2>node3 critical: hello\n");
  EXPECT_EQ(at(spdlog::level::err), "<3>node3 error: hello\n");
  EXPECT_EQ(at(spdlog::level::warn), "<4>node3 warning: hello\n");
  EXPECT_EQ(at(spdlog::level::info), "<6>node3 info: hello\n");
  EXPECT_EQ(at(spdlog::level::debug), "<7>node3 debug: hello\n");
}

TEST(LogFormat, json_has_the_fields_that_are_known_and_no_others) {
  auto line = line_of("hello");
  EXPECT_EQ(
      parsed(written(LogFormat::json, line)),
      nlohmann::json(
          {{"time", "2026-11-26T22:05:01.250+00:00"}, {"level", "warning"}, {"node", "node3"}, {"message", "hello"}}));
  const auto id = ContentId::of(as_bytes(std::string_view("code")));
  line.fields = {.ifunc = "sum", .content_id = &id, .peer = "client 7", .key = "k7", .link = 12};
  const auto all = parsed(written(LogFormat::json, line));
  EXPECT_EQ(all["ifunc"], "sum");
  EXPECT_EQ(all["content_id"], id.hex());
  EXPECT_EQ(all["peer"], "client 7");
  EXPECT_EQ(all["key"], "k7");
  EXPECT_EQ(all["link"], 12);
}

TEST(LogFormat, json_keeps_characters_and_escapes_what_controls) {
  const char text_with_zero[] =
      "quote\" back\\slash \n\r\t\b\0 \x1b[2J \x7f \xc2\x9b x \xc3\xa4 \xe2\x82\xac \xf0\x9f\x98\x80";
  const std::string_view hostile(text_with_zero, sizeof text_with_zero - 1);
  auto line = line_of(hostile);
  line.node = line.fields.ifunc = line.fields.peer = line.fields.key = "\",\"level\":\"forged";
  const auto text = written(LogFormat::json, line);
  const auto json = parsed(text);
  EXPECT_EQ(json["message"], hostile);
  EXPECT_EQ(json["node"], line.node);
  EXPECT_EQ(json["ifunc"], line.node);
  EXPECT_EQ(json["peer"], line.node);
  EXPECT_EQ(json["key"], line.node);
  EXPECT_EQ(json["level"], "warning");
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  EXPECT_EQ(text.find('\x7f'), std::string::npos);
  EXPECT_EQ(text.find("\xc2\x9b"), std::string::npos);
}

TEST(LogFormat, json_replaces_each_byte_that_is_no_utf8) {
  const auto shown = [](std::string_view bytes) {
    return parsed(written(LogFormat::json, line_of(bytes)))["message"].get<std::string>();
  };
  const std::string bad = "\xef\xbf\xbd";
  EXPECT_EQ(shown("a\x80z"), "a" + bad + "z");
  EXPECT_EQ(shown("\xff\xfe"), bad + bad);
  EXPECT_EQ(shown("\xc0\xaf"), bad + bad) << "overlong";
  EXPECT_EQ(shown("\xe0\x80\x80"), bad + bad + bad) << "overlong";
  EXPECT_EQ(shown("\xed\xa0\x80"), bad + bad + bad) << "a surrogate";
  EXPECT_EQ(shown("\xf4\x90\x80\x80"), bad + bad + bad + bad) << "beyond Unicode";
  EXPECT_EQ(shown("\xe2\x82"), bad + bad) << "ends too early";
  EXPECT_EQ(shown("\xe2\"x"), bad + "\"x") << "the quote is no part of it";
  EXPECT_EQ(shown("\xf0\x9f\"\x80"), bad + bad + "\"" + bad) << "the quote is no part of it";
  EXPECT_EQ(shown("\xf0\x9f\x98\""), bad + bad + bad + "\"") << "the quote is no part of it";
  EXPECT_EQ(shown("\xef\xbf\xbf\xf4\x8f\xbf\xbf"), "\xef\xbf\xbf\xf4\x8f\xbf\xbf");
}

TEST(LogFormat, every_two_and_three_bytes_are_json) {
  std::string bytes(3, '\0');
  for (unsigned i = 0; i < 1u << 16; ++i) {
    bytes[0] = static_cast<char>(i & 0xff);
    bytes[1] = static_cast<char>(i >> 8);
    bytes[2] = static_cast<char>(i * 31 >> 5);
    ASSERT_NO_THROW(parsed(written(LogFormat::json, line_of(bytes)))) << i;
  }
}

TEST(LogFormat, a_line_too_long_is_cut_between_characters_and_says_so) {
  for (const std::string_view unit : {"x", "\"", "\x01", "\xe2\x82\xac", "\xff"}) {
    std::string long_one;
    while (long_one.size() < 5000) long_one += unit;
    auto line = line_of(long_one);
    line.fields = {.ifunc = long_one, .peer = long_one};
    const auto text = written(LogFormat::json, line);
    EXPECT_LE(text.size(), longest_log_line);
    const auto json = parsed(text);
    EXPECT_TRUE(json["message"].get<std::string>().ends_with(" ...")) << json["message"];
    EXPECT_TRUE(json["message"].get<std::string>().starts_with("x") || unit != "x");
    EXPECT_TRUE(json["ifunc"].get<std::string>().ends_with(" ..."));
    EXPECT_GT(text.size(), longest_log_line - 16);
  }
  for (const auto format : {LogFormat::text, LogFormat::journal}) {
    const auto text = written(format, line_of(std::string(5000, 'x')));
    EXPECT_EQ(text.size(), longest_log_line);
    EXPECT_TRUE(text.ends_with("x ...\n"));
  }
}

TEST(LogFormat, it_is_the_journals_where_standard_error_is_its_stream) {
  struct stat here{};
  const int null = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
  ASSERT_EQ(::fstat(null, &here), 0);
  const auto of = [&](const std::string& variable) { return log_format_of(std::nullopt, null, variable.c_str()); };
  const auto both = fmt::format("{}:{}", here.st_dev, here.st_ino);
  EXPECT_EQ(of(both), LogFormat::journal);
  for (const auto& other :
       {fmt::format("{}:{}", here.st_dev, here.st_ino + 1), fmt::format("{}:{}", here.st_dev + 1, here.st_ino),
        both + "x", both.substr(1) + "0", std::string(), std::string(":"), std::string("1:"), std::string("a:b")})
    EXPECT_EQ(of(other), LogFormat::text) << other;
  EXPECT_EQ(log_format_of(std::nullopt, null, nullptr), LogFormat::text);
  EXPECT_EQ(log_format_of(std::nullopt, -1, both.c_str()), LogFormat::text);
  EXPECT_EQ(log_format_of(LogFormat::json, null, both.c_str()), LogFormat::json);
  ::close(null);
}

TEST(LogContext, the_innermost_one_counts_on_its_own_thread) {
  EXPECT_EQ(current_log_fields().ifunc, "");
  {
    const LogContext outer({.ifunc = "outer", .peer = "p"});
    {
      const LogContext inner({.ifunc = "inner"});
      EXPECT_EQ(current_log_fields().ifunc, "inner");
      EXPECT_EQ(current_log_fields().peer, "");
    }
    EXPECT_EQ(current_log_fields().ifunc, "outer");
  }
  EXPECT_EQ(current_log_fields().ifunc, "");
}

// A pipe of a log, and what is in it.
class PipedLog {
 public:
  explicit PipedLog(LogFormat format) {
    int ends[2];
    EXPECT_EQ(::pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
    read_ = Fd(ends[0]);
    write_ = Fd(ends[1]);
    log_.emplace("node3", std::make_shared<LogSink>(write_.get()));
    log_->set_formatter(std::make_unique<LogFormatter>(format));
  }
  spdlog::logger& log() { return *log_; }
  std::string take() {
    std::string all;
    char buffer[65536];
    for (ssize_t got = 0; (got = ::read(read_.get(), buffer, sizeof buffer)) > 0;)
      all.append(buffer, static_cast<size_t>(got));
    return all;
  }

 private:
  Fd read_, write_;
  std::optional<spdlog::logger> log_;
};

TEST(LogFormatter, lines_of_json_are_about_what_their_thread_says) {
  PipedLog piped(LogFormat::json);
  {
    const LogContext about({.ifunc = "sum", .peer = "client 7"});
    piped.log().error("one\ntwo");
  }
  const auto json = parsed(piped.take());
  EXPECT_EQ(json["message"], "one\ntwo");
  EXPECT_EQ(json["ifunc"], "sum");
  EXPECT_EQ(json["level"], "error");
}

TEST(LogFormatter, dropped_lines_are_told_in_json_too) {
  PipedLog piped(LogFormat::json);
  for (int i = 0; i < 10'000; ++i) piped.log().warn("line {}", i);
  (void)piped.take();
  const LogContext about({.ifunc = "sum"});
  piped.log().warn("the next one");
  const auto text = piped.take();
  const auto first = parsed(text.substr(0, text.find('\n') + 1));
  EXPECT_TRUE(first["message"].get<std::string>().ends_with("lines of this log were dropped: nobody read the log"));
  EXPECT_EQ(first["node"], "node3");
  EXPECT_FALSE(first.contains("ifunc"));
}

TEST(LogFormatter, further_lines_in_the_journal_have_the_priority_of_the_first_and_cannot_set_their_own) {
  PipedLog piped(LogFormat::journal);
  piped.log().error("one\n<0>two\nthree");
  EXPECT_EQ(piped.take(), "<3>node3 error: one\n<3>    <0>two\n<3>    three\n");
}

TEST(LogFormatter, a_line_of_text_too_long_for_one_write_is_cut) {
  PipedLog piped(LogFormat::text);
  piped.log().warn("{}", std::string(10'000, 'x'));
  const auto text = piped.take();
  EXPECT_EQ(text.size(), size_t{PIPE_BUF});
  EXPECT_TRUE(text.ends_with("x ...\n"));
}

TEST(LogFormatter, a_line_of_text_that_just_fits_in_one_write_stays_whole) {
  PipedLog piped(LogFormat::text);
  piped.log().warn("");
  const auto head = piped.take().size();
  piped.log().warn("{}", std::string(longest_log_line - head, 'x'));
  const auto text = piped.take();
  EXPECT_EQ(text.size(), longest_log_line);
  EXPECT_TRUE(text.ends_with("xxxxxx\n"));
}

TEST(FunctionSink, a_function_gets_each_message_with_the_level_of_tc_log) {
  std::vector<std::pair<int, std::string>> got;
  spdlog::logger log(
      "node3", std::make_shared<FunctionSink>([&](int level, const char* line) { got.emplace_back(level, line); }));
  log.set_level(spdlog::level::trace);
  log.trace("t");
  log.debug("d");
  log.info("i");
  log.warn("two\nlines");
  log.error("e");
  log.critical("c");
  EXPECT_EQ(got, (std::vector<std::pair<int, std::string>>{
                     {0, "t"}, {0, "d"}, {1, "i"}, {2, "two\n    lines"}, {3, "e"}, {3, "c"}}));
}

}  // namespace
}  // namespace tc
