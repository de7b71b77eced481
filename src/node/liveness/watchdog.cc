// SPDX-License-Identifier: Apache-2.0
#include "node/liveness/watchdog.h"

#include <algorithm>
#include <chrono>
#include <new>

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

Watchdog::Watchdog(target::Executor& executor, const std::vector<target::Executor*>& others, uint32_t limit_ms,
                   Report report, Warn warn)
    : executor_(executor),
      limit_ns_(uint64_t{limit_ms} * 1'000'000),
      report_(std::move(report)),
      warn_(std::move(warn)) {
  watched_.push_back({&executor, executor.moment(), 0, false});
  for (auto* const other : others) watched_.push_back({other, other->moment(), 0, false});
}

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
  if (limit_ns_ != 0 && !thread_.joinable()) start();
  const std::scoped_lock lock(mutex_);
  names_.insert_or_assign(&code, code.name());
}

void Watchdog::start() {
  if (auto thread = quiet_thread([this] { run(); })) {
    thread_ = std::move(*thread);
  } else {
    limit_ns_ = 0;
    warn_(thread.error().message);
  }
}

void Watchdog::forget(const target::Code& code) {
  const std::scoped_lock lock(mutex_);
  names_.erase(&code);
}

std::optional<std::string> Watchdog::running() const {
  const std::scoped_lock lock(mutex_);
  for (const auto& one : watched_) {
    const auto moment = one.executor->moment();
    if (!moment.runs || moment.code == nullptr) continue;
    const auto known = names_.find(moment.code);
    return known != names_.end() ? known->second : "?";
  }
  return std::nullopt;
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
  int idle_looks = 0;
  std::unique_lock lock(mutex_);
  for (auto& seen : watched_) seen = {seen.executor, seen.executor->moment(), now_ns(), false};
  while (!ends_) {
    changed_.wait_for(lock, step);
    bool something_runs = false;
    for (auto& seen : watched_) something_runs |= look(seen, lock);
    idle_looks = something_runs ? 0 : idle_looks + 1;
    if (idle_looks < patience) continue;
    doze(lock, step);
    idle_looks = 0;
  }
}

// Reports a call that has been seen for too long. False: nothing runs there, and nothing ran since the last look.
bool Watchdog::look(Seen& seen, std::unique_lock<std::mutex>& lock) {
  const auto now = now_ns();
  const auto moment = seen.executor->moment();
  if (moment != seen.moment) {
    seen = {seen.executor, moment, now_ns(),
            false};  // not `now`: this thread may have been interrupted before it looked
    return true;
  }
  if (moment.runs && moment.code != nullptr && !seen.is_reported && now - seen.since_ns >= limit_ns_) {
    seen.is_reported = true;
    const auto known = names_.find(moment.code);
    const std::string name = known != names_.end() ? known->second : "?";
    lock.unlock();  // the report may take its time; watch() and forget() must not wait for it
    try {
      report_(name, (now - seen.since_ns) / 1'000'000);
    } catch (const std::bad_alloc&) {  // the watch goes on without the line
    }
    lock.lock();
  }
  return moment.runs;
}

// The thread that runs the next frames finds this flag.
void Watchdog::doze(std::unique_lock<std::mutex>& lock, std::chrono::nanoseconds step) {
  executor_.let_watcher_doze(true);
  changed_.wait_for(lock, longest_sleep(step), [this] { return ends_ || !executor_.watcher_dozes(); });
  executor_.let_watcher_doze(false);
  for (auto& seen : watched_) seen.since_ns = now_ns();
}

}  // namespace tc::node
