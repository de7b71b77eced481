// SPDX-License-Identifier: Apache-2.0
//
// SIGTERM and SIGINT as a request to stop, and SIGHUP as one to read keys and options anew, without a signal handler and so without a
// global.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <thread>

#include "base/result.h"

namespace tc::command {

// Make one before any other thread starts: it blocks these signals in this thread, and threads inherit that. From
// start() to finish() a thread of its own takes the signals. A second signal to stop ends the process at once.
class StopSignals {
 public:
  // Each is called from that thread.
  struct Handlers {
    std::function<void(int signal)> stop;                // the first signal to stop
    std::function<void(int signal)> again = [](int) {};  // the second one: the process ends when this returns
    std::function<void()> waits = [] {};                 // half a second later: the process has not stopped yet
    // `drain_ms` after the signal, and after a second of grace once more. True: the process ends when this returns.
    std::function<bool()> gives_up = [] { return true; };
    std::function<void()> reload;  // each SIGHUP
  };

  StopSignals();
  ~StopSignals() { finish(); }
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  // Without `drain_ms` the process may take as long as it likes to stop. TC_ERR_IO: no thread can be had.
  [[nodiscard]] Status start(Handlers handlers, std::optional<uint32_t> drain_ms);
  // From now on. For handlers.
  void set_drain_ms(uint32_t drain_ms) noexcept { drain_ns_ = uint64_t{drain_ms} * 1'000'000; }
  // Afterwards no handler is called any more and signals have their usual effect on this thread.
  void finish();
  // The one that was taken first; 0 before. For `Handlers::stop` too.
  int signal() const noexcept { return signal_.load(std::memory_order_acquire); }
  bool requested() const noexcept { return requested_.load(std::memory_order_acquire); }

 private:
  void take_signals();
  void act_on(int signal);
  // Until when to wait for a signal; UINT64_MAX: for ever.
  uint64_t next_step_ns() const noexcept;
  void take_step();

  Handlers handlers_;
  std::optional<uint64_t> drain_ns_;
  uint64_t requested_ns_ = 0;  // the thread's own; 0: not yet
  bool has_told_ = false;      // Handlers::waits
  uint64_t grace_ns_ = 0;      // that was given
  std::atomic<int> signal_{0};
  std::atomic<bool> requested_{false};
  std::atomic<bool> closing_{false};
  std::thread thread_;
};

}  // namespace tc::command
