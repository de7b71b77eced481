// SPDX-License-Identifier: Apache-2.0
//
// SIGTERM and SIGINT as a request to stop, and SIGHUP as one to read keys anew, without a signal handler and so without a
// global.
#pragma once

#include <atomic>
#include <functional>
#include <thread>

namespace tc::command {

// Make one before any other thread starts: it blocks these signals in this thread, and threads inherit that. From
// start() to finish() a thread of its own takes the signals. The first one to stop calls `on_stop` (from that thread); a
// second one ends the process at once, for when an ifunc does not return. SIGHUP calls `on_reload` each time.
class StopSignals {
 public:
  StopSignals();
  ~StopSignals() { finish(); }
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  void start(std::function<void()> on_stop, std::function<void()> on_reload);
  // Afterwards neither function is called any more and signals have their usual effect on this thread.
  void finish();
  // The one that was taken first; 0 before. For `on_stop` too.
  int signal() const noexcept { return signal_.load(std::memory_order_acquire); }
  bool requested() const noexcept { return requested_.load(std::memory_order_acquire); }

 private:
  void take_signals();

  std::function<void()> on_stop_;
  std::function<void()> on_reload_;
  std::atomic<int> signal_{0};
  std::atomic<bool> requested_{false};
  std::atomic<bool> closing_{false};
  std::thread thread_;
};

}  // namespace tc::command
