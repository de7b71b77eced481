// SPDX-License-Identifier: Apache-2.0
//
// The threads of a node besides its own (`threads`), and which call runs where (docs/threads.md):
//
//     the node's thread                                             workers
//     polls, reads frames, runs short code
//     hand_over() ------------ a call that may take long ---------> run it
//     deliver()   <----------- its answer, what it asks ------------
//                 <----------- its end ----------------------------
//
// Everything that the node consists of stays with the node's thread: a worker has the call, its payload and a table of the named
// data, and asks for the rest. So nothing is locked on the way of short calls.
//
// Ordinary (exclusive) code never runs beside other ordinary code: while a call of it is handed over, the others wait, those
// of the node's thread too. Concurrent code runs beside anything.
//
// Thread: the node's, but for what says otherwise.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "node/workers/handed_calls.h"
#include "node/workers/worker.h"

namespace tc::transport {
class Transport;
}

namespace tc::node {

class Workers {
 public:
  Workers(const Common& common, HandedCalls& calls, const target::IfuncHost& chief);
  ~Workers() { close(); }
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  // Makes the threads. `transport` is woken when one of them has something to say. TC_ERR_IO.
  Status start(transport::Transport& transport);
  // Are there any? Any thread.
  bool exist() const noexcept { return !workers_.empty(); }
  // Their executors, for the watchdog; from the beginning.
  std::vector<target::Executor*> executors() noexcept;

  // ---- Handing over

  enum class Place : uint8_t {
    here,       // on the node's thread, now
    elsewhere,  // hand_over()
    later,      // once take_freed() is true
  };
  Place place(const target::Code& code) noexcept;
  // May such a call have another place than `later`?
  bool may_place(bool concurrent) const noexcept {
    return concurrent ? has_free_thread() || may_hand_over_more() : !calls_.exclusive_runs();
  }
  // So many were handed over, and no thread has taken them up.
  size_t unbegun() noexcept {
    const std::scoped_lock lock(mutex_);
    return ready_.size();
  }
  // Of a call whose place is elsewhere. May throw std::bad_alloc.
  void hand_over(std::unique_ptr<HandedCall> handed);
  // Sends answers, does what calls ask, and ends those that have run. How much happened.
  size_t deliver();
  // What peers may do has changed, at their links too: calls that have not begun and may be concerned are refused.
  void renew_rights();

  // At the node's end: drops calls that have not begun, and waits for the others. The log says which, once a second.
  void close() noexcept;
  // A piece of that wait, of at most so long. True: no call is left.
  bool wait_for_calls(std::chrono::milliseconds longest) noexcept;

  // ---- Any worker

  // The answer of its call. May throw std::bad_alloc.
  void post_reply(HandedCall& handed, ByteView bytes);
  void post(Worker& worker, Ask& ask) noexcept;

 private:
  struct Reply {
    HandedCall* handed;
    Bytes bytes;
  };
  struct Question {
    Worker* worker;
    Ask* ask;
  };
  struct Mail {
    std::vector<Reply> replies;
    std::vector<Question> questions;  // at most one of each worker
    std::vector<HandedCall*> ended;   // at most as many as there are calls
    void reserve(size_t workers, size_t calls);
    void clear() noexcept;
  };

  void run(Worker& worker);
  void notify_node(bool had_mail) noexcept;
  size_t deliver(Mail& mail);
  void answer(const Question& question) noexcept;
  void drop_unbegun(FunctionRef<bool(const HandedCall&)> chosen, const Error& why) noexcept;
  HandedCall* take_unbegun(FunctionRef<bool(const HandedCall&)> chosen) noexcept;
  size_t most_calls() const noexcept;
  bool has_free_thread() const noexcept { return calls_.on_threads() < workers_.size(); }
  bool may_hand_over_more() const noexcept { return !ordinary_waits_ && calls_.on_threads() < most_calls(); }

  const Common& common_;
  HandedCalls& calls_;
  transport::Transport* transport_ = nullptr;

  bool ordinary_waits_ = false;  // for a free thread
  uint64_t next_word_ns_ = 0;    // of wait_for_calls()
  Mail opened_;                  // what deliver() works on

  // With the lock
  std::mutex mutex_;
  std::condition_variable has_work_, has_news_;
  std::vector<HandedCall*> ready_;  // not begun; as few as there may be calls
  Mail mail_;
  bool ends_ = false;

  std::atomic<bool> has_mail_{false};
  std::vector<std::unique_ptr<Worker>> workers_;
  std::vector<std::thread> threads_;  // last, as they use the others
};

}  // namespace tc::node
