// SPDX-License-Identifier: Apache-2.0
//
// The lock of a node, and the progress thread, which polls the node so that the application need not.
//
// A node belongs to one thread. While a progress thread runs, other threads may enter it, too, one at a time and with
// the lock of the Gate. The progress thread holds this lock while it sleeps inside the node. So a caller that wants in
// counts itself in waiting() and wakes the node; the progress thread then lets it in first. Without a progress thread,
// a Pass costs one load.
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
  class Entry {
   public:
    Entry(Gate& gate, node::Node& node) noexcept : gate_(gate), node_(node) {}
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
    if (mutex_.try_lock()) return;
    waiting_.fetch_add(1);
    node.wake();  // the progress thread may sleep with the lock held
    mutex_.lock();
    waiting_.fetch_sub(1);
  }

  // Unlocks. Wakes the waiting threads if answers came, or if a thread waits for something other than an answer.
  void leave(node::Node& node) {
    const auto settled = node.futures().settled();
    const bool news = std::exchange(settled_, settled) != settled || listeners_ != 0;
    mutex_.unlock();
    if (news) happened_.notify_all();
  }

  std::atomic<bool> shared_{false};  // first, so that it shares a cache line with what every call reads
  std::recursive_mutex mutex_;       // recursive, because an ifunc may call exported functions that call the library
  std::condition_variable_any happened_;
  uint64_t settled_ = 0;    // the node's count of settled futures at the last leave()
  uint32_t listeners_ = 0;  // threads that wait for something other than a future
  std::atomic<int> waiting_{0};
};

class Progress {
 public:
  Progress(Gate& gate, node::Node& node) : gate_(gate), node_(node) {}
  ~Progress() { (void)stop(); }

  bool runs() const noexcept { return thread_.joinable(); }
  // TC_ERR_INVALID: the thread runs already, or the caller is inside an ifunc or a function that the node called.
  Status start();
  // TC_ERR_INVALID: the caller is inside an ifunc or a function that the node called.
  Status stop();
  // For a function that the progress thread called. Once this function has returned, the thread leaves the node and
  // calls `last`, which may free this object. False: the caller is another thread.
  bool end_with(std::function<void()> last) noexcept;

  // Waits until `done` returns true, which the end of a future must cause, or until the deadline. False: the deadline
  // passed. The progress thread must be running. `done` is called with the lock held.
  bool wait_until(Deadline deadline, const std::function<bool()>& done);

 private:
  void run();
  void pause(Deadline deadline);

  Gate& gate_;
  node::Node& node_;
  std::atomic<bool> stopping_{false};
  std::function<void()> last_;  // end_with()
  std::thread thread_;
};

}  // namespace tc::capi
