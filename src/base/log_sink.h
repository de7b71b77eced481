// SPDX-License-Identifier: Apache-2.0
//
// Writes a node's log to standard error and never waits for it, because a pipe that is not read must not stop a node. A
// line that cannot be written at once is dropped. The next line that is written says how many were.
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
  // `descriptor` stays its owner's, who may let it lead elsewhere at any time.
  explicit LogSink(int descriptor) noexcept : descriptor_(descriptor) {}
  ~LogSink() override;

 protected:
  void sink_it_(const spdlog::details::log_msg& message) override;
  void flush_() override {}

 private:
  // What the descriptor leads to, and so how to write to it without waiting.
  enum class Kind : uint8_t { file, stream, socket, unknown };
  void look_at_descriptor() noexcept;
  bool write(std::string_view line) noexcept;
  void say_dropped() noexcept;
  std::string in_colour(const spdlog::details::log_msg& message, std::string_view line) const;

  const int descriptor_;
  Kind kind_ = Kind::unknown;
  bool is_terminal_ = false;
  dev_t device_ = 0;
  ino_t inode_ = 0;
  Fd reopened_;  // of a stream: our own, so that not waiting is a property of ours alone
  uint64_t dropped_ = 0;
};

using LogFunction = std::function<void(int level, const char* line)>;

// Gives each line to a function instead, one at a time; what the function does with it is its own affair. A line is what
// was said, without time and name, and without the line feed at its end.
class FunctionSink final : public spdlog::sinks::sink {
 public:
  explicit FunctionSink(LogFunction function) : function_(std::move(function)) {}
  void log(const spdlog::details::log_msg& message) override;
  void flush() override {}
  void set_pattern(const std::string&) override {}
  void set_formatter(std::unique_ptr<spdlog::formatter>) override {}

 private:
  std::recursive_mutex one_at_a_time_;  // the function may lead to a line of its own
  const LogFunction function_;
};

}  // namespace tc
