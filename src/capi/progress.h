// SPDX-License-Identifier: Apache-2.0
//
// The progress thread: polls and sleeps, so that the application need not.
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
  // By the node's thread, while no other call is going on.
  void set_shared(bool shared) noexcept { shared_.store(shared, std::memory_order_release); }

  // Callers that want in; the progress thread makes way for them.
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

  // For who waits for news (happened_): the wait lets others in, and comes back as everybody comes in. Were it to take
  // the mutex alone, the progress thread, which sleeps with it, would not make way.
  class Entry {
   public:
    Entry(Gate& gate, node::Node& node) noexcept : gate_(gate), node_(node) {}
    void lock() { gate_.lock(node_); }
    void unlock() { gate_.mutex_.unlock(); }  // and tells nobody: happened_ calls it with its own lock held

   private:
    Gate& gate_;
    node::Node& node_;
  };

 private:
  friend class Progress;

  void lock(node::Node& node) {
    if (mutex_.try_lock()) return;
    waiting_.fetch_add(1);
    node.wake();  // it may be asleep with the lock held
    mutex_.lock();
    waiting_.fetch_sub(1);
  }

  // Tells those who wait when answers have come, whosever call it was that took them in; and those who wait for something
  // else, whatever has happened.
  void leave(node::Node& node) {
    const auto settled = node.futures().settled();
    const bool news = std::exchange(settled_, settled) != settled || listeners_ != 0;
    mutex_.unlock();
    if (news) happened_.notify_all();
  }

  std::atomic<bool> shared_{false};  // first: beside what every call looks at
  std::recursive_mutex mutex_;       // recursive: a running ifunc may lead to exported functions that call the library
  std::condition_variable_any happened_;
  uint64_t settled_ = 0;    // futures, when somebody left last
  uint32_t listeners_ = 0;  // threads that wait for something else than a future
  std::atomic<int> waiting_{0};
};

class Progress {
 public:
  Progress(Gate& gate, node::Node& node) : gate_(gate), node_(node) {}
  ~Progress() { (void)stop(); }

  bool runs() const noexcept { return thread_.joinable(); }
  // TC_ERR_INVALID: it runs, or this thread is inside an ifunc or a function that the node called.
  Status start();
  // TC_ERR_INVALID: this thread is inside an ifunc or a function that the node called.
  Status stop();
  // Inside a function that the progress thread called: once that has returned, the thread leaves the node and calls `last`,
  // which may free this object. False: it was another thread that called the function.
  bool end_with(std::function<void()> last) noexcept;

  // Waits, while the thread runs, until `done` or the deadline, for what a future tells. `done` is evaluated with the lock
  // held.
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
