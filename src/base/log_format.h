// SPDX-License-Identifier: Apache-2.0
//
// How a line of a node's log looks: for people, for programs, or for systemd's journal.
//
//     text     2026-11-26T23:05:01.250+01:00 node3 warning: link to 10.0.0.7:7000 dropped: ...
//     json     {"time":"2026-11-26T23:05:01.250+01:00","level":"warning","node":"node3",
//              "peer":"node 7 (node7)","key":"ed25519:...","link":12,"message":"..."}
//     journal  <4>node3 warning: link to ... (the journal has the time, and takes the priority from the front)
//
// Threads: any.
#pragma once

#include <spdlog/formatter.h>

#include <cstdint>
#include <ctime>
#include <optional>
#include <span>
#include <string_view>

#include "base/content_id.h"

namespace tc {

enum class LogFormat : uint8_t { text, json, journal };

// `set`: what the configuration says. Without it, journal where `descriptor` is the stream that systemd has connected to
// its journal, which `journal_stream` ($JOURNAL_STREAM, may be null) names as "DEVICE:INODE", and text everywhere else.
LogFormat log_format_of(std::optional<LogFormat> set, int descriptor, const char* journal_stream) noexcept;

// What is known about a line besides its words. Only JSON has a place for it. What is empty is left out.
struct LogFields {
  std::string_view ifunc = {};
  const ContentId* content_id = nullptr;
  std::string_view peer = {};
  std::string_view key = {};  // the peer's
  uint64_t link = 0;          // to it; 0: there is none
};

// While it lives, what this thread logs is about these. What they refer to must live as long. The innermost one counts.
class LogContext {
 public:
  explicit LogContext(const LogFields& fields) noexcept;
  ~LogContext();
  LogContext(const LogContext&) = delete;
  LogContext& operator=(const LogContext&) = delete;

 private:
  const LogFields fields_;
  const LogContext* const outer_;
  friend LogFields current_log_fields() noexcept;
};
LogFields current_log_fields() noexcept;

struct LogLine {
  timespec time;
  long seconds_east;  // of Greenwich, for the zone
  spdlog::level::level_enum level;
  std::string_view node;
  std::string_view message;
  LogFields fields = {};
};

// The line with its line feed, or as much of it as there is room for: the message is cut then, and ends in " ...". It
// needs no memory and takes no lock, so that a handler of signals may call it. Returns the size.
size_t write_log_line(std::span<char> out, LogFormat format, const LogLine& line) noexcept;

// How long a line of JSON can get: a pipe takes that many bytes at once or none.
inline constexpr size_t longest_log_line = 4096;

long seconds_east_of_greenwich(time_t at) noexcept;

// What spdlog calls.
class LogFormatter final : public spdlog::formatter {
 public:
  explicit LogFormatter(LogFormat format) noexcept : format_(format) {}
  void format(const spdlog::details::log_msg& message, spdlog::memory_buf_t& out) override;
  std::unique_ptr<spdlog::formatter> clone() const override { return std::make_unique<LogFormatter>(format_); }

 private:
  const LogFormat format_;
};

}  // namespace tc
