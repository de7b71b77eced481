// SPDX-License-Identifier: Apache-2.0
#include "node/use_recorder.h"

#include <new>
#include <utility>

#include "base/quiet_thread.h"

namespace tc::node {

UseRecorder::UseRecorder(std::filesystem::path file, Report report, std::chrono::milliseconds pause)
    : file_(std::move(file)), report_(std::move(report)), pause_(pause) {}

UseRecorder::~UseRecorder() {
  if (!thread_.joinable()) return;
  {
    const std::scoped_lock lock(mutex_);
    ends_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void UseRecorder::record(const trust::PublicKey& key, trust::Time now) {
  if (!thread_.joinable() && !start()) return;
  const std::scoped_lock lock(mutex_);
  pending_.insert_or_assign(key, now);
  changed_.notify_one();
}

bool UseRecorder::start() {
  if (has_failed_to_start_) return false;
  auto thread = quiet_thread([this] { run(); });
  if (thread) return thread_ = std::move(*thread), true;
  has_failed_to_start_ = true;
  report_(fmt::format("there is no thread that could write it: {}", thread.error().message));
  return false;
}

void UseRecorder::run() {
  std::unique_lock lock(mutex_);
  while (!ends_ || !pending_.empty()) {
    changed_.wait(lock, [this] { return ends_ || !pending_.empty(); });
    if (pending_.empty()) return;
    const auto uses = std::exchange(pending_, {});
    lock.unlock();
    write(uses);
    lock.lock();
    changed_.wait_for(lock, pause_, [this] { return ends_; });
  }
}

void UseRecorder::write(const trust::UseTimes& uses) noexcept {
  try {
    const auto written = file_.record(uses);
    if (!written && !std::exchange(has_reported_, true)) report_(written.error().message);
  } catch (const std::bad_alloc&) {  // the node goes on, and so does this
  }
}

}  // namespace tc::node
