// SPDX-License-Identifier: Apache-2.0
#include "node/liveness/watchdog.h"

#include <algorithm>
#include <chrono>
#include <system_error>

#include "base/clock.h"
#include "base/quiet_thread.h"

namespace tc::node {

namespace {

// Looks without any change before it sleeps.
constexpr int patience = 4;
// A sleep ends by itself, as wake() takes no fence to be sure of the flag.
std::chrono::nanoseconds longest_sleep(std::chrono::nanoseconds step) {
  return std::max<std::chrono::nanoseconds>(4 * step, std::chrono::seconds(1));
}

}  // namespace

Watchdog::Watchdog(target::Executor& executor, uint32_t limit_ms, Report report, Warn warn)
    : executor_(executor),
      limit_ns_(uint64_t{limit_ms} * 1'000'000),
      report_(std::move(report)),
      warn_(std::move(warn)) {}

Watchdog::~Watchdog() {
  if (!thread_.joinable()) return;
  {
    const std::scoped_lock lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Watchdog::watch(const target::Code& code) {
  if (limit_ns_ != 0 && !thread_.joinable()) try {
      thread_ = quiet_thread([this] { run(); });
    } catch (const std::system_error& error) {
      limit_ns_ = 0;
      warn_(error.what());
    }
  const std::scoped_lock lock(mutex_);
  names_.insert_or_assign(&code, code.name());
}

void Watchdog::forget(const target::Code& code) {
  const std::scoped_lock lock(mutex_);
  names_.erase(&code);
}

std::optional<std::string> Watchdog::running() const {
  const auto moment = executor_.moment();
  if (!moment.runs || moment.code == nullptr) return std::nullopt;
  const std::scoped_lock lock(mutex_);
  const auto known = names_.find(moment.code);
  return known != names_.end() ? known->second : "?";
}

void Watchdog::wake() noexcept {
  {
    const std::scoped_lock lock(mutex_);
    executor_.let_watcher_doze(false);
  }
  changed_.notify_all();
}

void Watchdog::run() {
  const auto step = std::chrono::nanoseconds(std::max<uint64_t>(limit_ns_ / 2, 1'000'000));
  auto seen = executor_.moment();
  auto since = now_ns();
  int looks = 0;
  bool reported = false;
  std::unique_lock lock(mutex_);
  while (!ends_) {
    changed_.wait_for(lock, step);
    const auto now = now_ns();
    if (const auto moment = executor_.moment(); moment != seen) {
      seen = moment;
      since = now_ns();  // not `now`: this thread may have been interrupted before it looked
      looks = 0;
      reported = false;
    } else if (!moment.runs && ++looks >= patience) {
      // The thread that runs the next frames finds this flag.
      executor_.let_watcher_doze(true);
      changed_.wait_for(lock, longest_sleep(step), [this] { return ends_ || !executor_.watcher_dozes(); });
      executor_.let_watcher_doze(false);
      since = now_ns();
      looks = 0;
    } else if (moment.runs && moment.code != nullptr && !reported && now - since >= limit_ns_) {
      reported = true;
      const auto known = names_.find(moment.code);
      const std::string name = known != names_.end() ? known->second : "?";
      lock.unlock();  // the report may take its time; watch() and forget() must not wait for it
      report_(name, (now - since) / 1'000'000);
      lock.lock();
    }
  }
}

}  // namespace tc::node
