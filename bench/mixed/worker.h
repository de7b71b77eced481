// SPDX-License-Identifier: Apache-2.0
//
// A thread that does the work of long calls, so that the thread which receives them can go on. It runs on the CPUs of
// the thread that made it. Thread: one hands calls over and takes them back.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <stop_token>
#include <thread>
#include <vector>

#include "mixed/am_call.h"

namespace tc::bench {

class Worker {
 public:
  // `wake` is called on the worker's thread after each call.
  explicit Worker(std::function<void()> wake);
  void hand_over(const AmCall& call);
  // The calls that were done since the last time, each as its answer.
  std::vector<AmCall> take_done();

 private:
  void run(const std::stop_token& stop);

  const std::function<void()> wake_;
  std::mutex mutex_;
  std::condition_variable_any handed_over_;
  std::deque<AmCall> waiting_;
  std::vector<AmCall> done_;
  std::atomic<bool> any_done_{false};  // spares the thread that polls the lock
  std::jthread thread_;                // the last: it uses the others
};

}  // namespace tc::bench
