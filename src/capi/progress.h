// SPDX-License-Identifier: Apache-2.0
//
// The lock of a node, and the progress thread, which polls the node so that the application need not.
//
// A node belongs to one thread. While a progress thread runs, other threads may enter it, too, one at a time and with
// the lock of the Gate. The progress thread holds this lock while it sleeps inside the node. So a caller that wants in
// counts itself in waiting() and wakes the node; the progress thread then lets it in first. Without a progress thread,
// a Pass costs one load.
//
// A thread of the program that waits meanwhile either sleeps until the progress thread notifies it (Waiters::sleep), or polls
// the node itself (Waiters::poll): one of the threads that wait polls, and notifies the others. With Waiters::poll the progress
// thread keeps out of the way of a program that uses the node: it polls now and then, and serves alone once the node is unused.
//
// Threads: any, unless a comment says otherwise.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>

#include "node/node.h"

namespace tc::capi {

class Gate {
 public:
  bool is_shared() const noexcept { return shared_.load(std::memory_order_relaxed); }
  // The node's thread calls this, while no other call is running.
  void set_shared(bool shared) noexcept { shared_.store(shared, std::memory_order_release); }

  // The number of callers that wait for the lock. The progress thread lets them in.
  const std::atomic<int>& waiting() const noexcept { return waiting_; }

  class Pass {
   public:
    Pass(Gate& gate, node::Node& node) : gate_(gate.is_shared() ? &gate : nullptr), node_(node) {
      if (gate_ != nullptr) gate_->lock(node_);
    }
    ~Pass() {
      if (gate_ != nullptr) gate_->leave(node_);
    }
    Pass(const Pass&) = delete;
    Pass& operator=(const Pass&) = delete;

   private:
    Gate* gate_;
    node::Node& node_;
  };

  // The lock for threads that wait on happened_. While such a thread waits, others can enter. When it wakes, it enters
  // with lock(), like every other caller. If it took mutex_ directly, the progress thread, which sleeps with this mutex
  // held, would not let it in.
  class Lock {
   public:
    Lock(Gate& gate, node::Node& node) noexcept : gate_(gate), node_(node) {}
    void lock() { gate_.lock(node_); }
    // Notifies nobody, because happened_ calls this with its own lock held.
    void unlock() { gate_.mutex_.unlock(); }

   private:
    Gate& gate_;
    node::Node& node_;
  };

 private:
  friend class Progress;

  void lock(node::Node& node) {
    if (!mutex_.try_lock()) {
      waiting_.fetch_add(1);
      node.wake();  // the progress thread may sleep with the lock held
      mutex_.lock();
      waiting_.fetch_sub(1);
    }
    uses_.store(uses_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }

  // Unlocks. Wakes the waiting threads if answers came, or if a thread waits for something other than an answer.
  void leave(node::Node& node) {
    const bool news = has_news(node);
    mutex_.unlock();
    if (news) happened_.notify_all();
  }

  // Since the last call of this function. The caller holds the lock.
  bool has_news(node::Node& node) noexcept {
    const auto settled = node.futures().settled();
    return std::exchange(settled_, settled) != settled || listeners_ != 0;
  }

  std::atomic<bool> shared_{false};  // first, so that it shares a cache line with what every call reads
  std::recursive_mutex mutex_;       // recursive, because an ifunc may call exported functions that call the library
  std::condition_variable_any happened_;
  uint64_t settled_ = 0;    // the node's count of settled futures at the last has_news()
  uint32_t listeners_ = 0;  // threads that wait for something other than a future
  std::atomic<int> waiting_{0};
  std::atomic<uint64_t> uses_{0};  // calls of the program; written with the lock
};

class Progress {
 public:
  Progress(Gate& gate, node::Node& node) : gate_(gate), node_(node) {}
  ~Progress() { (void)stop(); }

  enum class Waiters : uint8_t { sleep, poll };

  bool runs() const noexcept { return thread_.joinable(); }
  // TC_ERR_INVALID: the thread runs already, or the caller is inside an ifunc or a function that the node called.
  Status start(Waiters waiters);
  // TC_ERR_INVALID: the caller is inside an ifunc or a function that the node called.
  Status stop();
  // For a function that the progress thread called, or that a call on another thread of the node called. The progress thread
  // leaves the node when it may, and calls `last`, which may free this object once these calls have ended. False: no such thread
  // runs, or another thread polls, and called the function.
  bool end_with(std::function<void()> last) noexcept;

  // Waits until `done` returns true, which the end of a future must cause, or until the deadline. False: the deadline
  // passed. The progress thread must be running. The caller holds the gate, once.
  bool wait_until(Deadline deadline, FunctionRef<bool()> done);

 private:
  void run();
  void stand_back();
  void pause(Deadline deadline);
  void poll_here(Deadline deadline);
  size_t poll_briefly();
  void sleep_until_notified(Deadline deadline);
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
