// SPDX-License-Identifier: Apache-2.0
//
// A node, and the discipline by which the threads of a Python program drive it.
//
// Whoever waits for an answer polls the node itself (drive): an answer then needs no hand-over between threads. While
// nobody waits, one keeper thread polls and sleeps (keep), so that peers are served, deadlines kept and futures
// settled. All of them take turns under one lock; a thread that wants in announces itself and ends a sleeper's sleep.
//
// Nothing here knows Python: no function may be called with the interpreter's lock held if it can wait, and none
// takes that lock. Any thread may call anything. After a fork, a child gets TC_ERR_CLOSED from everything.
#pragma once

#include <threechains/threechains.h>

#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace tc::python {

// What the C API said.
class Failure : public std::runtime_error {
 public:
  Failure(tc_status_t status, const std::string& message) : std::runtime_error(message), status(status) {}
  tc_status_t status;
};

// A call whose answer will come. Its answer, once ready, belongs to whoever claims it.
class Call {
 public:
  explicit Call(tc_future_t* future) noexcept : future_(future) {}
  ~Call();
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  bool ready() const noexcept { return tc_future_ready(future_) != 0; }
  // True for the first caller only.
  bool claim() noexcept { return !claimed_.exchange(true, std::memory_order_acq_rel); }
  bool claimed() const noexcept { return claimed_.load(std::memory_order_acquire); }
  tc_future_t* future() const noexcept { return future_; }

  // What to notify: the binding's own, never used here.
  void* owner = nullptr;

 private:
  tc_future_t* future_;
  std::atomic<bool> claimed_{false};
  unsigned fork_ = 0;
  friend class Engine;
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
  enum class Drive { ready, others, timeout, interrupted };

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
  uint32_t peer_id(size_t endpoint);
  std::string transport(size_t endpoint);
  tc_status_t endpoint_status(size_t endpoint);
  size_t register_ifunc(std::span<const std::byte> bundle);

  // A message of `size` bytes made of source args; of unwritten bytes when `source_args` is null.
  MessagePtr make_message(size_t ifunc, void* source_args, size_t size);
  // The same of parts, one after another.
  MessagePtr make_message(size_t ifunc, std::span<const Part> parts);
  // Sends it and asks for the answer. Null when there is no room for it: `make_room`, then again.
  CallPtr try_call(size_t endpoint, tc_message_t& message, uint32_t deadline_ms, void* owner);
  // The same without an answer; false when there is no room.
  bool try_send(size_t endpoint, tc_message_t& message);
  void make_room();
  void flush(size_t endpoint, uint32_t timeout_ms);

  // Waits for this call, polling the node. `others`: calls of other threads are ready, collect() them. Returns after
  // a while as `interrupted`, so that signals can be looked after.
  Drive drive(Call& call, uint64_t timeout_ns);
  // The ready calls that nobody claimed before.
  std::vector<CallPtr> collect();
  // For the keeper thread: waits until calls are ready, and gives them. Nothing after close().
  std::optional<std::vector<CallPtr>> keep();

  // Fails every call that still waits and ends the node. The keeper must be told to stop first, and have ended.
  void stop_keeping();
  std::vector<CallPtr> close();
  bool closed() const noexcept { return closed_.load(std::memory_order_acquire); }
  // Are we in a child process that was forked after this was made?
  bool inherited() const noexcept;

 private:
  class Turn;
  struct Endpoint {
    tc_endpoint_t* handle = nullptr;
    std::deque<CallPtr> pending;
  };

  void check_usable() const;
  Endpoint& endpoint_at(size_t index);
  bool heads_ready();
  bool any_ready();
  std::vector<CallPtr> take_ready();
  void note_activity() noexcept;
  void wake() noexcept;
  void stand_back();
  bool drive_locked(Call& call, uint64_t until_ns, Drive& outcome);

  tc_node_t* node_ = nullptr;
  std::vector<tc_ifunc_t*> ifuncs_;
  std::vector<Endpoint> endpoints_;
  unsigned fork_;
  std::mutex mutex_;
  std::mutex waking_;                   // so that nobody wakes a node that ends
  std::atomic<int> wanted_{0};          // threads that want their turn now
  std::atomic<int> driving_{0};         // threads in drive()
  std::atomic<uint64_t> active_ns_{0};  // when the program last called
  std::atomic<bool> keeping_{false};    // the keeper has the lock, and may sleep with it
  std::atomic<size_t> pending_{0};
  uint64_t scanned_ns_ = 0;
  std::atomic<bool> stopping_{false};
  std::atomic<bool> closed_{false};
};

}  // namespace tc::python
