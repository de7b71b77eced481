// SPDX-License-Identifier: Apache-2.0
//
// A node, as the threads of a Python program share it.
//
// The node's progress is shared (tc_node_start_shared_progress()): a thread that waits for an answer polls the node itself,
// and while none waits, the node's own thread serves it. None of them may take the interpreter's lock while it has the
// node's, so an answer passes through here:
//
//     whoever polls          note_ready(): the call goes into the list of ready calls
//     a thread in wait()     collect(): takes the list, its own answer and those of others, and tells their owners
//     the keeper thread      keep(), then collect(): the same when no thread that waits is about to do it
//
// Nothing here knows Python: no function may be called with the interpreter's lock held if it can wait, and none
// takes that lock. Any thread may call anything. After a fork, a child gets TC_ERR_CLOSED from everything.
#pragma once

#include <threechains/threechains.h>

#include <atomic>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace tc::python {

class Engine;

// What the C API said.
class Failure : public std::runtime_error {
 public:
  Failure(tc_status_t status, const std::string& message) : std::runtime_error(message), status(status) {}
  tc_status_t status;
};

// A call whose answer will come. Its answer, once ready, belongs to whoever claims it.
class Call {
 public:
  Call(Engine& engine, tc_future_t* future, void* owner) noexcept;
  ~Call();
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  bool ready() const noexcept { return tc_future_ready(future_) != 0; }
  // True for the first caller only.
  bool claim() noexcept { return !claimed_.exchange(true, std::memory_order_acq_rel); }
  bool claimed() const noexcept { return claimed_.load(std::memory_order_acquire); }
  tc_future_t* future() const noexcept { return future_; }

  // What to notify: the binding's own, never used here.
  void* owner;

 private:
  friend class Engine;
  tc_future_t* future_;
  Engine& engine_;  // there until the call is ready
  unsigned fork_;
  std::atomic<bool> claimed_{false};
  std::atomic<int> waiters_{0};  // threads in wait() for it
  std::shared_ptr<Call> self_;   // until the answer was collected
  Call* next_ = nullptr;         // in the list of ready calls
};
using CallPtr = std::shared_ptr<Call>;

struct FreeMessage {
  void operator()(tc_message_t* message) const noexcept { tc_message_free(message); }
};
using MessagePtr = std::unique_ptr<tc_message_t, FreeMessage>;

// One piece of a payload.
struct Part {
  const void* bytes;
  size_t size;
  size_t padding;  // zero bytes behind it
};

class Engine {
 public:
  using Options = std::vector<std::pair<std::string, std::string>>;

  explicit Engine(const Options& options);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  std::string address();
  uint64_t stat(const std::string& name);
  void reload_keys();
  void expose(const std::string& name, void* data, size_t size);

  // Endpoints and ifuncs are numbers: nothing dangles when the node is gone.
  size_t connect(const std::string& address, uint32_t timeout_ms);
  void disconnect(size_t endpoint, uint32_t timeout_ms);
  std::string peer(size_t endpoint);
  std::string transport(size_t endpoint);
  tc_status_t endpoint_status(size_t endpoint);
  size_t register_ifunc(std::span<const std::byte> bundle);

  // A message of `size` bytes made of source args; of unwritten bytes when `source_args` is null.
  MessagePtr make_message(size_t ifunc, const void* source_args, size_t size);
  // The same without a copy where that can be: `source_args` stay in place until the message is freed.
  MessagePtr make_message_in_place(size_t ifunc, const void* source_args, size_t size);
  // The same of parts, one after another.
  MessagePtr make_message(size_t ifunc, std::span<const Part> parts);
  // Sends it and asks for the answer. Null when there is no room for it: `make_room`, then again.
  CallPtr try_call(size_t endpoint, tc_message_t& message, uint32_t deadline_ms, void* owner);
  // The same without an answer; false when there is no room.
  bool try_send(size_t endpoint, tc_message_t& message);
  void make_room();
  void flush(size_t endpoint, uint32_t timeout_ms);

  // Takes the call back, unless it is ready (tc_future_cancel()).
  void cancel(Call& call) noexcept;
  // Waits for this call; returns early after a moment, so that signals can be handled, or when other calls are ready.
  // Collect afterwards.
  void wait(Call& call, uint64_t timeout_ns);
  // The ready calls that nobody claimed before.
  std::vector<CallPtr> collect();
  // For the keeper thread: waits until there are calls to collect. False at the end.
  bool keep();

  // Tells the keeper to end, which it must have done before close().
  void stop_keeping();
  // Fails every call that still waits and ends the node. Collect afterwards.
  void close();
  bool closed() const noexcept { return closed_.load(std::memory_order_acquire); }
  // Are we in a child process that was forked after this was made?
  bool inherited() const noexcept;

 private:
  struct Endpoint {
    tc_endpoint_t* handle;
    std::mutex flushing;  // also taken before the endpoint is freed
  };

  using CreateMessage = decltype(tc_message_create);
  MessagePtr create_message(CreateMessage create, size_t ifunc, const void* source_args, size_t size);
  void check_usable() const;
  std::unique_lock<std::mutex> enter();
  std::shared_lock<std::shared_mutex> enter_to_wait();
  tc_endpoint_t* endpoint_at(size_t index);
  void wait_once(const Call& call, uint32_t timeout_ms);
  void note_ready(Call& call) noexcept;
  bool has_ready() const noexcept { return ready_.load() != nullptr; }
  void call_keeper() noexcept;

  tc_node_t* node_ = nullptr;
  unsigned fork_;
  std::atomic<bool> closed_{false};
  std::mutex mutex_;         // of the two tables, and held by functions of the node that do not wait
  std::shared_mutex waits_;  // held shared by those that wait
  std::vector<tc_ifunc_t*> ifuncs_;
  std::deque<Endpoint> endpoints_;

  std::atomic<Call*> ready_{nullptr};  // the list of ready calls, the latest first
  std::atomic<int> collectors_{0};     // threads that will collect within a millisecond
  std::mutex keeper_mutex_;
  std::condition_variable keeper_called_;
  bool keeper_has_work_ = false, stopping_ = false;
};

}  // namespace tc::python
