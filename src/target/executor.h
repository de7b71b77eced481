// SPDX-License-Identifier: Apache-2.0
//
// How an ifunc is called, and what it may call: the innermost step of the hot path.
//
//     Executor   calls the ifunc; one of each node
//     Call       describes the call in progress to the node
//     IfuncHost  what the ifunc may ask of its node: <threechains/ifunc.h> in C++
//
// Thread: the node's. The functions that give addresses: any.
//
// While a call runs, `running()` describes it to the node. A plain call costs a few stores around one
// indirect call, and a look whether the code has changed how the thread computes (float_state.h). What an ifunc does besides (reply, fail, forward) sets has_effects, and only then is there anything to
// clean up.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "base/bytes.h"
#include "target/code.h"
#include "target/float_state.h"
#include "target/time_slice.h"
#include "wire/chain.h"
#include "wire/frame.h"

namespace tc::target {

class Executor;
class FrameHandler;
class LastWords;

// What a running ifunc may ask of the node that it runs on. The node implements it, and so does the papers' API, which has
// no node (src/ucp_ifunc). The ABI functions reach it through the call in progress on this thread.
class IfuncHost {
 public:
  // What serves the node's own thread: this one, or, of a host for another thread of the node, that one.
  const IfuncHost* chief() const noexcept { return chief_; }
  // Of the cluster, from 0, and how many there are: 0 and 1 outside of one.
  uint32_t node_id() const noexcept { return node_id_; }
  uint32_t node_count() const noexcept { return node_count_; }
  // Named data that the application exposed; null when there is none.
  virtual void* data(std::string_view name, size_t* size) noexcept = 0;
  // These return TC_OK or what went wrong; the bytes are copied before they return.
  virtual tc_status_t reply(ByteView bytes) noexcept = 0;
  virtual tc_status_t forward(uint32_t node, ByteView payload) noexcept = 0;
  virtual tc_status_t forward_as(uint32_t node, std::string_view name, ByteView payload) noexcept = 0;
  virtual tc_status_t inject(uint32_t node, std::string_view name, ByteView payload) noexcept = 0;
  virtual void fail(int32_t code, std::string_view message) noexcept = 0;
  virtual void log(int level, std::string_view message) noexcept = 0;

  // ---- For a signal's handler, on the thread of the call: nothing is locked or allocated

  struct InProgress {
    const Executor* executor = nullptr;
    std::string_view caller = {};  // "client x"
  };
  virtual InProgress in_progress() const noexcept { return {}; }
  // Speaks when the process ends inside a call; null: nobody does. Must outlive the host's calls.
  const LastWords* last_words() const noexcept { return chief_->last_words_; }
  void use(const LastWords& words) noexcept { last_words_ = &words; }

 protected:
  IfuncHost() = default;
  explicit IfuncHost(const IfuncHost& chief) noexcept : chief_(&chief) {}
  IfuncHost& operator=(const IfuncHost&) = delete;
  ~IfuncHost() = default;
  void be_node(uint32_t id, uint32_t count) noexcept {
    node_id_ = id;
    node_count_ = count;
  }

 private:
  const IfuncHost* chief_ = this;
  const LastWords* last_words_ = nullptr;
  uint32_t node_id_ = 0, node_count_ = 1;
};

// The host of the ifunc that runs on this thread; null when none does. Set by the executor around a run of
// frames, which is what lets two nodes live in one process.
// (The model of access says that it is in the block that every thread gets at its start: one instruction to reach.)
extern constinit thread_local IfuncHost* current_host [[gnu::tls_model("initial-exec")]];

// Whether the call on this thread is on its way out: it has failed, and each of its functions returns at once (docs/languages.md,
// "When code fails"). Injected code sets and reads the byte through tc_leaving(); it starts each call by clearing it. Code that
// runs a call inside of another one clears it after a call that failed.
extern constinit thread_local uint8_t leaving [[gnu::tls_model("initial-exec")]];
extern "C" uint8_t* tc_leaving(void);

// The ABI functions by name, for the linker: what every ifunc may call. Null for any other name.
void* abi_symbol(std::string_view name) noexcept;

// Functions that compilers call by themselves (wire/abi_names.h): memory functions, 128-bit arithmetic, and on aarch64
// the outlined atomics. Every ifunc may use them, because they change only memory that they are given. Null for any other
// name, and for functions that this ISA's compiler runtime does not have.
void* compiler_runtime_symbol(std::string_view name) noexcept;

// A value that the node's thread alone writes and a watching thread may read at any time. As cheap as a plain one.
template <class T>
class Watched {
 public:
  Watched(T value = {}) noexcept : value_(value) {}  // NOLINT: stands for a T
  Watched(const Watched& other) noexcept : value_(other.get()) {}
  Watched& operator=(const Watched& other) noexcept { return *this = other.get(); }
  Watched& operator=(T value) noexcept {
    value_.store(value, std::memory_order_relaxed);
    return *this;
  }
  Watched& operator++() noexcept { return *this = get() + 1; }
  T get() const noexcept { return value_.load(std::memory_order_relaxed); }
  operator T() const noexcept { return get(); }  // NOLINT
  T operator->() const noexcept { return get(); }

 private:
  std::atomic<T> value_;
};

// One call in progress.
struct Call {
  Watched<Code*> code = nullptr;
  FrameHandler* link = nullptr;  // the link that the frame came from; null for a call of this node itself
  bool has_effects = false;      // anything below differs from the defaults
  bool wants_reply = false;
  bool has_header = false;
  bool has_return_address = false;
  bool answered = false;    // a reply was sent, or the call was forwarded with its return address
  bool lost_reply = false;  // there was no memory for what tc_reply() was given, and it may be given again
  bool failed = false;      // with the code and message below
  int32_t fail_code = 0;
  wire::CallHeader header;
  wire::PackedReturnAddress return_address;  // the last one that came, while has_return_address is false
  wire::SharedChain chain;                   // while has_return_address: on whose behalf the call is made
  std::string fail_message;
};

class alignas(64) Executor {
 public:
  explicit Executor(IfuncHost& host) noexcept : host_(host) {}

  // Makes ABI functions on this thread reach our node. Around a run of frames, not around each.
  class Scope {
   public:
    explicit Scope(Executor& executor) noexcept
        : executor_(executor), before_(std::exchange(current_host, &executor.host_)) {
      executor_.floats_ = FloatState::now();
      executor_.runs_ = true;
      executor_.scope_ = this;
    }
    ~Scope() {
      executor_.runs_ = false;
      current_host = before_;
    }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    Executor& executor_;
    IfuncHost* before_;
  };

  // Is the caller inside of a call, or of what is done between calls, of this executor, or of another one of its node?
  bool inside_call() const noexcept { return current_host != nullptr && current_host->chief() == &host_; }

  // Around what is done between calls and may take long: no ifunc is to blame for it.
  class Pause {
   public:
    explicit Pause(Executor& executor) noexcept : executor_(executor), before_(executor.runs_) {
      executor_.runs_ = false;
    }
    ~Pause() {
      ++executor_.tick_;
      executor_.runs_ = before_;
    }
    Pause(const Pause&) = delete;
    Pause& operator=(const Pause&) = delete;

   private:
    Executor& executor_;
    bool before_;
  };

  // What a watching thread looks at: the same twice, and that call has been running all the time between.
  struct Moment {
    bool runs;
    uint64_t executed, tick;
    const Code* code;  // not to be followed: it may be freed at any time
    bool operator==(const Moment&) const = default;
  };
  Moment moment() const noexcept { return {runs_, executed_, tick_, call_.code}; }
  // Frames of a call on its thread's stack lie below this.
  uintptr_t stack_base() const noexcept { return reinterpret_cast<uintptr_t>(scope_); }
  // The store is about to free this code.
  void forget(const Code& code) noexcept {
    if (call_.code == &code) call_.code = nullptr;
    slice_.forget(code);
  }
  // The watching thread may say that it looks away until it is woken, when something runs.
  void let_watcher_doze(bool dozes) noexcept { watcher_dozes_.store(dozes, std::memory_order_relaxed); }
  bool watcher_dozes() const noexcept { return watcher_dozes_.load(std::memory_order_relaxed); }

  // Runs a call. What its frame says besides code and payload is in running() already. False when the call has effects: then
  // the caller reads running() and calls reset().
  bool run(Code& code, void* payload, size_t size) noexcept {
    (void)slice_.before(code);
    prepare(code);
    const bool plain = run_prepared(code, payload, size);
    slice_.after(code, 1);
    return plain;
  }
  // The two halves of it, for many calls of the same code in a row, between slice().before() and after(). The first half
  // again after reset().
  void prepare(Code& code) noexcept {
    call_.code = &code;
    code.last_used = tick_;
  }
  bool run_prepared(Code& code, void* payload, size_t size) noexcept {
    ++executed_;
    code.entry.load(std::memory_order_acquire)(payload, size, target_args);
    floats_.restore();
    return !call_.has_effects;
  }

  Call& running() noexcept { return call_; }
  const Call& running() const noexcept { return call_; }
  // Ready for the next call; the link stays.
  void reset() noexcept {
    call_.code = nullptr;
    call_.has_effects = call_.wants_reply = call_.has_header = call_.has_return_address = call_.answered =
        call_.lost_reply = call_.failed = false;
    call_.header = {};
  }

  // A link, or the node itself, begins to run what has come for it. Also advances the clock by which the least recently used
  // code is found.
  void begin_turn() noexcept {
    ++tick_;
    slice_.begin();
  }
  TimeSlice& slice() noexcept { return slice_; }
  // May code of that lane run in place now?
  bool allows(Lane lane) const noexcept { return lane <= widest_; }
  // While exclusive code runs on another thread, none may run here.
  void set_exclusive_elsewhere(bool runs) noexcept { widest_ = runs ? Lane::shared : Lane::exclusive; }
  uint64_t executed() const noexcept { return executed_; }
  // A call has run on another thread of the node.
  void count_elsewhere() noexcept { ++executed_; }

  void* target_args = nullptr;

 private:
  IfuncHost& host_;
  Watched<uint64_t> tick_ = 0;
  Watched<uint64_t> executed_ = 0;
  Watched<bool> runs_ = false;
  std::atomic<bool> watcher_dozes_ = false;
  Lane widest_ = Lane::exclusive;
  const Scope* scope_ = nullptr;           // the innermost
  FloatState floats_ = FloatState::now();  // of the thread, outside of calls
  TimeSlice slice_;
  Call call_;
};

}  // namespace tc::target
