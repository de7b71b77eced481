// SPDX-License-Identifier: Apache-2.0
//
// Reports calls that run longer than the node's execution limit. It only reports: code in our own process cannot be
// stopped without leaving it in pieces. The sender's deadline ends its wait in any case.
//
// A thread of its own, as the node's thread may be the one that is stuck. It compares two looks at each executor, half a
// limit apart; the calls themselves pay nothing for it. When nothing moves for a while it sleeps until wake().
//
// Thread: the node's, but for what says otherwise.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "target/executor.h"

namespace tc::node {

class Watchdog {
 public:
  // Called from the watchdog's thread with the name of the ifunc and the milliseconds that it has been running.
  using Report = std::function<void(const std::string& ifunc, uint64_t running_ms)>;

  // Called from the node's thread when there is no thread for the watchdog; nothing is watched then.
  using Warn = std::function<void(const std::string& why)>;

  // `limit_ms` 0: watches nothing.
  // `others`: executors of other threads than the node's.
  Watchdog(target::Executor& executor, const std::vector<target::Executor*>& others, uint32_t limit_ms, Report report,
           Warn warn);
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  // Frames are about to run while it sleeps: Executor::watcher_dozes().
  void wake() noexcept;
  // Watches calls of this code too. The first one starts the thread: a node that only sends needs none. Names are kept
  // apart from the code, which may be freed while the watchdog looks.
  void watch(const target::Code& code);
  void forget(const target::Code& code);
  // The name of the ifunc that runs now; none: no call runs. Any thread.
  std::optional<std::string> running() const;

 private:
  // What one executor was seen to run.
  struct Seen {
    target::Executor* executor;
    target::Executor::Moment moment;
    uint64_t since_ns;
    bool is_reported;
  };

  void start();
  void run();
  bool look(Seen& seen, std::unique_lock<std::mutex>& lock);
  void doze(std::unique_lock<std::mutex>& lock, std::chrono::nanoseconds step);

  target::Executor& executor_;  // the node's: it has the flag that says that the watchdog sleeps
  std::vector<Seen> watched_;
  uint64_t limit_ns_;  // 0: nothing is watched
  const Report report_;
  const Warn warn_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::unordered_map<const target::Code*, std::string> names_;
  bool ends_ = false;
  std::thread thread_;
};

}  // namespace tc::node
