// SPDX-License-Identifier: Apache-2.0
//
// Writes a node's log to standard error. It never waits, because a pipe that nobody reads must not stop a node. It
// drops a line that it cannot write at once. The next line that it can write is preceded by the number of dropped
// lines.
//
// Threads: any.
#pragma once

#include <spdlog/sinks/base_sink.h>
#include <sys/stat.h>

#include <functional>
#include <mutex>
#include <string>
#include <string_view>

#include "base/fd.h"

namespace tc {

class LogSink final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  // Does not close `descriptor`. Its owner may redirect it at any time.
  explicit LogSink(int descriptor) : descriptor_(descriptor) {}
  ~LogSink() override;

 protected:
  void sink_it_(const spdlog::details::log_msg& message) override;
  void flush_() override {}

 private:
  // What the descriptor refers to. Each kind has its own way to write without waiting.
  enum class Kind : uint8_t { file, stream, socket, unknown };
  void look_at_descriptor() noexcept;
  bool write(std::string_view line) noexcept;
  void say_dropped() noexcept;
  std::string entry_of(const spdlog::details::log_msg& message);
  std::string in_colour(const spdlog::details::log_msg& message, std::string_view line) const;

  const int descriptor_;
  Kind kind_ = Kind::unknown;
  bool is_terminal_ = false;
  dev_t device_ = 0;
  ino_t inode_ = 0;
  Fd reopened_;  // a stream opened again, because O_NONBLOCK on `descriptor_` would affect other processes
  uint64_t dropped_ = 0;
  std::string name_;  // of the log, for the line about dropped ones
};

// Takes the lines of a log in place of standard error. `level` is that of tc_log(): from 0 (debug) to 3 (error).
using LogFunction = std::function<void(int level, const char* line)>;

// Gives each line to a function, one at a time. The line has only the message: no time, no name, no line feed. The
// function may block.
class FunctionSink final : public spdlog::sinks::sink {
 public:
  explicit FunctionSink(LogFunction function) : function_(std::move(function)) {}
  void log(const spdlog::details::log_msg& message) override;
  void flush() override {}
  void set_pattern(const std::string&) override {}
  void set_formatter(std::unique_ptr<spdlog::formatter>) override {}

 private:
  std::recursive_mutex one_at_a_time_;  // recursive, because the function may log
  const LogFunction function_;
};

}  // namespace tc
