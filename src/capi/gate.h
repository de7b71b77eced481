// SPDX-License-Identifier: Apache-2.0
//
// Who may touch a node: its one thread, freely; or, while a progress thread runs, whoever holds the lock. Without a
// progress thread a Pass costs one load.
#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>
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
    if (!mutex_.try_lock()) {
      waiting_.fetch_add(1);
      node.wake();  // it may be asleep with the lock held
      mutex_.lock();
      waiting_.fetch_sub(1);
    }
    uses_.store(uses_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }

  // Tells those who wait when answers have come, whosever call it was that took them in; and those who wait for something
  // else, whatever has happened.
  void leave(node::Node& node) {
    const bool news = has_news(node);
    mutex_.unlock();
    if (news) happened_.notify_all();
  }

  // Since it was asked last. With the lock.
  bool has_news(node::Node& node) noexcept {
    const auto settled = node.futures().settled();
    return std::exchange(settled_, settled) != settled || listeners_ != 0;
  }

  std::atomic<bool> shared_{false};  // first: beside what every call looks at
  std::recursive_mutex mutex_;       // recursive: a running ifunc may lead to exported functions that call the library
  std::condition_variable_any happened_;
  uint64_t settled_ = 0;    // futures, when somebody was told last
  uint32_t listeners_ = 0;  // threads that wait for something else than a future
  std::atomic<int> waiting_{0};
  std::atomic<uint64_t> uses_{0};  // calls of the program; written with the lock
};

}  // namespace tc::capi
