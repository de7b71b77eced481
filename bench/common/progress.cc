// SPDX-License-Identifier: Apache-2.0
#include "common/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "base/clock.h"

namespace tc::bench {

namespace {

constexpr uint64_t bar_gap_ns = 100'000'000;
constexpr uint64_t line_gap_ns = 5'000'000'000;
constexpr int bar_width = 30;

// "1:05" of seconds.
std::string minutes(double seconds) {
  const auto whole = static_cast<uint64_t>(seconds + 0.5);
  return fmt::format("{}:{:02}", whole / 60, whole % 60);
}

}  // namespace

Progress::Progress(std::string bench)
    : bench_(std::move(bench)),
      terminal_(::isatty(STDERR_FILENO) != 0),
      started_ns_(now_ns()),
      shown_ns_(started_ns_) {}

Progress::~Progress() {
  if (terminal_) std::fputs("\r\033[K", stderr);
}

void Progress::show(double done, double total, const std::string& what) {
  const auto now = now_ns();
  if (now - shown_ns_ < (terminal_ ? bar_gap_ns : line_gap_ns)) return;
  shown_ns_ = now;
  const double part = total > 0 ? std::clamp(done / total, 0.0, 1.0) : 0;
  const double spent = static_cast<double>(now - started_ns_) / 1e9;
  const auto left = part > 0 ? minutes(spent / part - spent) + " left" : std::string("measuring");
  if (!terminal_) {
    std::fprintf(stderr, "ifunc bench %s: %.0f %%, %s; %s\n", bench_.c_str(), 100 * part, left.c_str(), what.c_str());
    return;
  }
  const auto full = static_cast<int>(part * bar_width);
  const auto bar =
      std::string(static_cast<size_t>(full), '#') + std::string(static_cast<size_t>(bar_width - full), '.');
  std::fprintf(stderr, "\r[%s] %3.0f %%  %s  %s\033[K", bar.c_str(), 100 * part, left.c_str(), what.c_str());
}

}  // namespace tc::bench
