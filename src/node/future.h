// SPDX-License-Identifier: Apache-2.0
//
// Answers that will come, by token.
//
// Thread: the node's, or under its gate; `ready` may be looked at from any thread.
#pragma once

#include <array>
#include <atomic>
#include <deque>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/buffer_pool.h"
#include "base/bytes.h"
#include "base/function_ref.h"
#include "source/registry.h"
#include "wire/frame.h"

namespace tc::node {

struct Future : std::enable_shared_from_this<Future> {
  Future() noexcept {}  // not "= default": std::make_shared would clear all of its bytes before

  std::atomic<bool> ready{false};
  tc_status_t status = TC_OK;
  int32_t code = 0;      // of tc_fail()
  uint32_t node_id = 0;  // of the node that answered, or that died with the call
  std::string message;
  ByteView bytes;  // the answer: in `copy`, or, where that would cost much, in `memory`
  Bytes copy;
  PooledBuffer memory;

  // A place in a FutureList.
  struct Hook {
    Future* next;           // while it is in a list
    Future** at = nullptr;  // the pointer that leads here; null: it is in no list
  };

  // Waiting, while not ready:
  uint64_t link = 0;         // id of that by which its call left; 0: it is no call
  uint64_t token = 0;        // in its FutureTable
  uint64_t deadline_ns = 0;  // 0: none
  Hook of_link, of_deadline;
  // For messages: "ifunc 'tsi' on node 1 (name)"; without an ifunc, the peer was asked about itself. Put together when
  // there is something to say.
  std::shared_ptr<const source::Ifunc> ifunc;
  std::shared_ptr<const std::string> peer;
  std::string what() const;
  static constexpr uint64_t not_sent = UINT64_MAX;
  uint64_t failures_before = not_sent;  // how many the table knew of when the call had left

  // Called once when the future is ready; null: nothing is called. `will_notify` is true until the call has returned.
  void (*notify)(void* context) noexcept = nullptr;
  void* context = nullptr;
  size_t notify_index;  // in FutureTable::to_notify_, while ready and not called yet
  std::atomic<bool> will_notify{false};
};

// Futures, the last one first. To come and to go takes no search and no memory.
template <Future::Hook Future::* hook>
class FutureList {
 public:
  FutureList() = default;
  FutureList(const FutureList&) = delete;
  FutureList& operator=(const FutureList&) = delete;

  Future* first() const noexcept { return first_; }
  static Future* behind(const Future& future) noexcept { return (future.*hook).next; }
  void add(Future& future) noexcept {
    future.*hook = {first_, &first_};
    if (first_ != nullptr) (first_->*hook).at = &(future.*hook).next;
    first_ = &future;
  }
  // From the list that it is in, if any.
  static void remove(Future& future) noexcept {
    auto& place = future.*hook;
    if (place.at == nullptr) return;
    *place.at = place.next;
    if (place.next != nullptr) (place.next->*hook).at = place.at;
    place.at = nullptr;
  }

 private:
  Future* first_ = nullptr;
};

using FuturesOfLink = FutureList<&Future::of_link>;

// Futures by their deadlines: a hashed timing wheel (Varghese and Lauck, 1987). A slot has the futures whose deadlines lie
// in the same millisecond, and those of later turns of the wheel, of 4.3 s each. So a future costs a few instructions when
// it comes and goes, and one look each turn that it waits. A heap would cost a search with each answer.
class DeadlineWheel {
 public:
  // Before the first add(). May throw std::bad_alloc.
  void prepare() {
    if (slots_ == nullptr) slots_ = std::make_unique<Slots>();
  }
  void add(Future& future) noexcept;
  static void remove(Future& future) noexcept { Slot::remove(future); }
  // Hands over those whose deadline is at `now_ns` or before; `end` may remove that future, and no other. Returns how many
  // were looked at.
  size_t expire(uint64_t now_ns, FunctionRef<void(Future&)> end);
  // No deadline is before that time; 0: there is none.
  uint64_t next_ns() const noexcept { return next_ns_; }

 private:
  using Slot = FutureList<&Future::of_deadline>;
  static constexpr size_t slot_count = 4096;
  using Slots = std::array<Slot, slot_count>;
  static constexpr uint64_t tick_of(uint64_t ns) noexcept { return ns >> 20; }
  Slot& slot_of(uint64_t tick) noexcept { return (*slots_)[tick % slot_count]; }
  size_t find_next() noexcept;

  std::unique_ptr<Slots> slots_;
  uint64_t tick_ = 0;     // the first that is not over
  uint64_t next_ns_ = 0;  // 0: nothing is there
};

class FutureTable {
 public:
  // Registers a future; returns the token that the call carries. Tokens are random, as answers may come from any
  // node: a peer that was not asked cannot answer in another's name. `of_link`: of the link by which the answer will most
  // likely come; fail_those() ends the wait when it is lost.
  uint64_t add(std::shared_ptr<Future> future, FuturesOfLink& of_link);
  // Its call has left. Before, no node can have lost it.
  void set_sent(Future& future) const noexcept { future.failures_before = failures_known_; }
  // The answer is there. `memory`: where its bytes lie, to be kept with it; none: they are copied. False: nobody waits
  // for that token (any more).
  bool complete(const wire::Reply& reply, PooledBuffer memory);
  // The sender lost interest: `notify` is not called any more.
  void forget(Future& future);
  // The sender takes its call back.
  void cancel(Future& future) noexcept;
  // Calls `notify` once when the future, which is not ready yet, is: from notify_ready(). May throw std::bad_alloc.
  void notify_when_ready(Future& future, void (*notify)(void*) noexcept, void* context);
  // There are calls for notify_ready() to make.
  bool has_notifications() const noexcept { return !to_notify_.empty(); }
  // Calls `notify` of the futures that became ready. It may add and forget futures, and free its own.
  void notify_ready() noexcept;
  // No deadline of those that wait is before that time; 0: none has one.
  uint64_t next_deadline_ns() const noexcept { return by_deadline_.next_ns(); }
  // Fails all of a link.
  void fail_those(const FuturesOfLink& of_link, const Error& error) noexcept;
  void fail_all(const Error& error);
  // A node died; calls that end without an answer from now on say so.
  void record_peer_failure(uint32_t node_id, std::string label);
  // The call is nowhere: it went with a node that died since it was made.
  void fail_lost(uint64_t token);
  // Tokens of the calls that a node may have lost which died since they left.
  std::vector<uint64_t> maybe_lost() const;
  // Fails those whose deadline is at `now_ns` or before. Returns how many futures it looked at.
  size_t expire(uint64_t now_ns);
  bool empty() const noexcept { return waiting_.empty(); }
  size_t size() const noexcept { return waiting_.size(); }
  // How many became ready, ever.
  uint64_t settled() const noexcept { return settled_; }

 private:
  void settle(Future& future, const Error& error) noexcept;
  void make_ready(Future& future) noexcept {
    remove_from_lists(future);
    ++settled_;
    if (future.notify != nullptr) [[unlikely]] {
      future.notify_index = to_notify_.size();
      to_notify_.push_back(&future);  // there is room: notify_when_ready()
    }
    future.ready.store(true, std::memory_order_release);
  }
  static void remove_from_lists(Future& future) noexcept {
    FuturesOfLink::remove(future);
    DeadlineWheel::remove(future);
  }
  std::string failed_since(const Future& future) const;
  Error too_late(const Future& future) const noexcept;
  uint64_t next_token();

  std::unordered_map<uint64_t, std::shared_ptr<Future>> waiting_;
  uint64_t settled_ = 0;
  DeadlineWheel by_deadline_;
  std::vector<Future*> to_notify_;     // ready; null: forgotten. Their owners forget() them before they go
  size_t notifiable_ = 0;              // futures with a function: to_notify_ has room for each
  std::array<uint64_t, 32> random_{};  // drawn many at a time: a system call for each would show
  size_t drawn_ = random_.size();
  struct PeerFailure {
    uint32_t node_id;
    std::string label;
  };
  std::deque<PeerFailure> peer_failures_;  // the last few
  uint64_t failures_known_ = 0;            // in all
};

}  // namespace tc::node
