// SPDX-License-Identifier: Apache-2.0
#include "mixed/worker.h"

#include <utility>

#include "mixed/burn.h"

namespace tc::bench {

Worker::Worker(std::function<void()> wake)
    : wake_(std::move(wake)), thread_([this](const std::stop_token& stop) { run(stop); }) {}

void Worker::hand_over(const AmCall& call) {
  {
    const std::lock_guard lock(mutex_);
    waiting_.push_back(call);
  }
  handed_over_.notify_one();
}

std::vector<AmCall> Worker::take_done() {
  if (!any_done_.load(std::memory_order_relaxed)) return {};
  const std::lock_guard lock(mutex_);
  any_done_.store(false, std::memory_order_relaxed);
  return std::exchange(done_, {});
}

void Worker::run(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  while (handed_over_.wait(lock, stop, [this] { return !waiting_.empty(); })) {
    auto call = waiting_.front();
    waiting_.pop_front();
    lock.unlock();
    call.value = burn(call.value);
    lock.lock();
    done_.push_back(call);
    any_done_.store(true, std::memory_order_relaxed);
    lock.unlock();
    wake_();
    lock.lock();
    if (stop.stop_requested()) return;
  }
}

}  // namespace tc::bench
