// SPDX-License-Identifier: Apache-2.0
#include "base/log_format.h"

#include <fmt/format.h>
#include <spdlog/details/log_msg.h>
#include <sys/stat.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <climits>
#include <cstring>

namespace tc {

namespace {

static_assert(longest_log_line <= PIPE_BUF);

// In bytes of JSON. Names and labels are shorter; what a peer makes long must leave room for the message.
constexpr size_t longest_field = 640;
constexpr std::string_view cut_mark = " ...";

constinit thread_local const LogContext* innermost = nullptr;

// Text of limited length. What does not fit is left out.
class Line {
 public:
  explicit Line(std::span<char> room) noexcept : begin_(room.data()), at_(begin_), end_(begin_ + room.size()) {}

  bool add(std::string_view text) noexcept {
    const size_t taken = std::min(text.size(), room());
    if (taken != 0) std::memcpy(at_, text.data(), taken);
    at_ += taken;
    return taken == text.size();
  }
  template <class... Args>
  void print(fmt::format_string<Args...> format, Args&&... args) noexcept {
    at_ += std::min(room(), fmt::format_to_n(at_, room(), format, std::forward<Args>(args)...).size);
  }
  size_t room() const noexcept { return static_cast<size_t>(end_ - at_); }
  size_t size() const noexcept { return static_cast<size_t>(at_ - begin_); }

 private:
  char* const begin_;
  char* at_;
  char* const end_;
};

// How many of the first bytes are one character of UTF-8 (Unicode 15, table 3-7); 0: they are none.
size_t utf8_character(std::string_view text) noexcept {
  const auto byte = [&](size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u; };
  const auto follows = [&](size_t i, unsigned least = 0x80, unsigned most = 0xbf) {
    return byte(i) >= least && byte(i) <= most;
  };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  if (first >= 0xc2 && first <= 0xdf) return follows(1) ? 2 : 0;
  if (first >= 0xe0 && first <= 0xef)
    return follows(1, first == 0xe0 ? 0xa0 : 0x80, first == 0xed ? 0x9f : 0xbf) && follows(2) ? 3 : 0;
  if (first >= 0xf0 && first <= 0xf4)
    return follows(1, first == 0xf0 ? 0x90 : 0x80, first == 0xf4 ? 0x8f : 0xbf) && follows(2) && follows(3) ? 4 : 0;
  return 0;
}

// `text` as the inside of a JSON string, at most `most` bytes of it. Bytes that are no UTF-8 become U+FFFD. Characters
// that control a terminal are escaped, those above ASCII too. False: it was cut, between two characters.
bool add_json(Line& line, std::string_view text, size_t most) noexcept {
  most = std::min(most, line.room());
  while (!text.empty()) {
    const size_t length = utf8_character(text);
    std::string_view shown = text.substr(0, length);
    char escaped[8];
    const auto first = static_cast<unsigned char>(text[0]);
    const bool is_c1 = length == 2 && first == 0xc2 && static_cast<unsigned char>(text[1]) < 0xa0;
    if (length == 0) {
      shown = "\xef\xbf\xbd";
    } else if (first < ' ' || first == 0x7f || is_c1) {
      const unsigned code = is_c1 ? static_cast<unsigned char>(text[1]) : first;
      shown = {escaped, fmt::format_to_n(escaped, sizeof escaped, "\\u{:04x}", code).size};
    } else if (first == '"' || first == '\\') {
      escaped[0] = '\\';
      escaped[1] = static_cast<char>(first);
      shown = {escaped, 2};
    }
    if (shown.size() > most) return false;
    line.add(shown);
    most -= shown.size();
    text.remove_prefix(std::max<size_t>(length, 1));
  }
  return true;
}

void add_field(Line& line, std::string_view name, std::string_view value) noexcept {
  line.print("\"{}\":\"", name);
  if (!add_json(line, value, longest_field)) line.add(cut_mark);
  line.add("\",");
}

// RFC 3339, without what takes a lock: localtime() does.
void add_time(Line& line, const timespec& time, long seconds_east) noexcept {
  const auto local = std::chrono::sys_seconds(std::chrono::seconds(time.tv_sec + seconds_east));
  const auto day = std::chrono::floor<std::chrono::days>(local);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss clock(local - day);
  const long minutes_east = std::abs(seconds_east) / 60;
  line.print("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}{}{:02}:{:02}", static_cast<int>(date.year()),
             static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()), clock.hours().count(),
             clock.minutes().count(), clock.seconds().count(), time.tv_nsec / 1'000'000, seconds_east < 0 ? '-' : '+',
             minutes_east / 60, minutes_east % 60);
}

std::string_view name_of(spdlog::level::level_enum level) noexcept {
  const auto name = spdlog::level::to_string_view(level);
  return {name.data(), name.size()};
}

// As syslog(3) and systemd count them.
char priority_of(spdlog::level::level_enum level) noexcept {
  switch (level) {
    case spdlog::level::critical: return '2';
    case spdlog::level::err: return '3';
    case spdlog::level::warn: return '4';
    case spdlog::level::info: return '6';
    default: return '7';
  }
}

void add_json_line(Line& line, const LogLine& what) noexcept {
  line.add("{\"time\":\"");
  add_time(line, what.time, what.seconds_east);
  line.print("\",\"level\":\"{}\",", name_of(what.level));
  add_field(line, "node", what.node);
  if (!what.fields.ifunc.empty()) add_field(line, "ifunc", what.fields.ifunc);
  if (what.fields.content_id != nullptr) {
    line.add("\"content_id\":\"");
    for (const auto byte : what.fields.content_id->bytes) line.print("{:02x}", std::to_integer<unsigned>(byte));
    line.add("\",");
  }
  if (!what.fields.peer.empty()) add_field(line, "peer", what.fields.peer);
  if (!what.fields.key.empty()) add_field(line, "key", what.fields.key);
  if (what.fields.link != 0) line.print("\"link\":{},", what.fields.link);
  constexpr std::string_view end = "\"}\n";
  line.add("\"message\":\"");
  const size_t reserved = end.size() + cut_mark.size();
  if (!add_json(line, what.message, line.room() - std::min(line.room(), reserved))) line.add(cut_mark);
  line.add(end);
}

// What stands in front of the message. `level_at`: where its level does.
void add_head(Line& line, LogFormat format, const LogLine& what, size_t& level_at) noexcept {
  if (format == LogFormat::journal) {
    line.print("<{}>", priority_of(what.level));
  } else {
    add_time(line, what.time, what.seconds_east);
    line.add(" ");
  }
  line.print("{} ", what.node);
  level_at = line.size();
  line.print("{}: ", name_of(what.level));
}

}  // namespace

LogFormat log_format_of(std::optional<LogFormat> set, int descriptor, const char* journal_stream) noexcept {
  if (set) return *set;
  struct stat stream{};
  if (journal_stream == nullptr || ::fstat(descriptor, &stream) != 0) return LogFormat::text;
  const std::string_view text(journal_stream);
  uint64_t device = 0, inode = 0;
  const char* const end = text.data() + text.size();
  const auto first = std::from_chars(text.data(), end, device);
  if (first.ec != std::errc{} || first.ptr == end || *first.ptr != ':') return LogFormat::text;
  const auto second = std::from_chars(first.ptr + 1, end, inode);
  const bool is_it = second.ec == std::errc{} && second.ptr == end && device == stream.st_dev && inode == stream.st_ino;
  return is_it ? LogFormat::journal : LogFormat::text;
}

LogContext::LogContext(const LogFields& fields) noexcept : fields_(fields), outer_(innermost) { innermost = this; }

LogContext::~LogContext() { innermost = outer_; }

LogFields current_log_fields() noexcept { return innermost != nullptr ? innermost->fields_ : LogFields{}; }

size_t write_log_line(std::span<char> out, LogFormat format, const LogLine& line) noexcept {
  Line text(out);
  if (format == LogFormat::json) {
    add_json_line(text, line);
    return text.size();
  }
  size_t level_at = 0;
  add_head(text, format, line, level_at);
  const size_t reserved = cut_mark.size() + 1;
  if (line.message.size() + 1 <= text.room()) {
    text.add(line.message);
  } else {
    text.add(line.message.substr(0, text.room() - std::min(text.room(), reserved)));
    text.add(cut_mark);
  }
  text.add("\n");
  return text.size();
}

long seconds_east_of_greenwich(time_t at) noexcept {
  tm local{};
  return ::localtime_r(&at, &local) != nullptr ? local.tm_gmtoff : 0;
}

void LogFormatter::format(const spdlog::details::log_msg& message, spdlog::memory_buf_t& out) {
  const auto since = message.time.time_since_epoch();
  const auto seconds = std::chrono::floor<std::chrono::seconds>(since);
  const timespec time{.tv_sec = seconds.count(), .tv_nsec = std::chrono::nanoseconds(since - seconds).count()};
  const LogLine line{.time = time,
                     .seconds_east = format_ != LogFormat::journal ? seconds_east_of_greenwich(time.tv_sec) : 0,
                     .level = message.level,
                     .node = {message.logger_name.data(), message.logger_name.size()},
                     .message = {message.payload.data(), message.payload.size()},
                     .fields = current_log_fields()};
  char text[longest_log_line];
  if (format_ == LogFormat::json) {
    out.append(text, text + write_log_line(text, format_, line));
    return;
  }
  // The sink cuts what is too long, when it has seen how many lines a peer's text has.
  Line head(text);
  size_t level_at = 0;
  add_head(head, format_, line, level_at);
  out.append(text, text + head.size());
  message.color_range_start = level_at;
  message.color_range_end = level_at + name_of(message.level).size();
  out.append(line.message.data(), line.message.data() + line.message.size());
  out.push_back('\n');
}

}  // namespace tc
