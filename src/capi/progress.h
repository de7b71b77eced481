// SPDX-License-Identifier: Apache-2.0
//
// The progress thread: polls and sleeps, so that the application need not.
//
// A thread of the program that waits meanwhile either sleeps until the progress thread tells it (Waiters::sleep), or polls
// the node itself (Waiters::poll): one of those that wait does, and tells the others. With Waiters::poll the progress thread
// keeps out of the way of a program that uses the node: it polls now and then, and serves alone once the node is unused.
//
// Threads: any; start() and stop() by the node's, while no other call is going on.
#pragma once

#include <functional>
#include <thread>

#include "capi/gate.h"

namespace tc::capi {

class Progress {
 public:
  Progress(Gate& gate, node::Node& node) : gate_(gate), node_(node) {}
  ~Progress() { (void)stop(); }

  enum class Waiters : uint8_t { sleep, poll };

  bool runs() const noexcept { return thread_.joinable(); }
  // TC_ERR_INVALID: it runs, or this thread is inside an ifunc or a function that the node called.
  Status start(Waiters waiters);
  // TC_ERR_INVALID: this thread is inside an ifunc or a function that the node called.
  Status stop();
  // Inside a function that the progress thread called: once that has returned, the thread leaves the node and calls `last`,
  // which may free this object. False: it was another thread that called the function.
  bool end_with(std::function<void()> last) noexcept;

  // Waits, while the thread runs, until `done` or the deadline, for what a future tells. The caller has the gate, once.
  bool wait_until(Deadline deadline, FunctionRef<bool()> done);

 private:
  void run();
  void stand_back();
  void pause(Deadline deadline);
  void poll_here(Deadline deadline);
  size_t poll_briefly();
  void sleep_until_told(Deadline deadline);
  void let_others_in();
  bool may_poll_here() const noexcept { return waiters_ == Waiters::poll && !polled_.load(std::memory_order_relaxed); }

  Gate& gate_;
  node::Node& node_;
  Waiters waiters_ = Waiters::sleep;
  std::atomic<bool> polled_{false};  // by a thread that waits; written with the lock
  std::atomic<bool> stopping_{false};
  uint64_t uses_ = 0, used_ns_ = 0;  // the progress thread's: uses of the node that it has seen, and when
  std::function<void()> last_;       // end_with()
  std::thread thread_;
};

}  // namespace tc::capi
