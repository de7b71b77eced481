// SPDX-License-Identifier: Apache-2.0
//
// Runs ifuncs: the innermost step of the hot path. One executor per node; thread: the node's.
//
// While a call runs, `running()` describes it to the ABI functions. A plain call costs a few stores around one
// indirect call; what an ifunc does besides (reply, fail, forward) marks the call as touched, and only then is
// there anything to clean up.
#pragma once

#include <string>
#include <utility>

#include "target/code_store.h"
#include "target/ifunc_host.h"
#include "wire/frame.h"

namespace tc::target {

// One call in progress.
struct Call {
  Code* code = nullptr;
  void* link = nullptr;  // the node's: whom the frame came from; null for a call from this node itself
  bool touched = false;  // anything below differs from the defaults
  bool wants_reply = false;
  bool has_ticket = false;
  bool has_route = false;
  bool answered = false;  // a reply was sent, or the duty to reply was forwarded
  bool failed = false;
  int32_t fail_code = 0;
  wire::CallTicket ticket;
  wire::Route route;
  std::string fail_message;
};

class Executor {
 public:
  explicit Executor(IfuncHost& host) noexcept : host_(host) {}

  // Makes ABI functions on this thread reach our node. Around a run of frames, not around each.
  class Scope {
   public:
    explicit Scope(Executor& executor) noexcept : before_(std::exchange(current_host, &executor.host_)) {}
    ~Scope() { current_host = before_; }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    IfuncHost* before_;
  };

  // A call without ticket or route. False when it was touched: the caller looks at running() and calls reset().
  bool run_plain(Code& code, void* payload, size_t size) noexcept {
    call_.code = &code;
    code.last_used = tick_;
    ++code.calls;
    ++executed_;
    code.entry.load(std::memory_order_acquire)(payload, size, target_args);
    return !call_.touched;
  }

  Call& running() noexcept { return call_; }
  const Call& running() const noexcept { return call_; }
  void reset() noexcept {
    void* const link = call_.link;
    call_ = Call{};
    call_.link = link;
  }

  // Advances the clock by which the least recently used code is found. Once per run of frames.
  void next_tick() noexcept { ++tick_; }
  uint64_t executed() const noexcept { return executed_; }

  void* target_args = nullptr;

 private:
  IfuncHost& host_;
  Call call_;
  uint64_t tick_ = 0;
  uint64_t executed_ = 0;
};

}  // namespace tc::target
