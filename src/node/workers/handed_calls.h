// SPDX-License-Identifier: Apache-2.0
//
// The calls of a node that run outside of its own thread: on its other threads (Workers), or in processes of their own (Cells).
// What such a call says and asks comes here, and is done on its behalf; so is its end.
//
// Thread: the node's.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "node/code/codes.h"
#include "node/invocation.h"
#include "node/workers/handed_call.h"

namespace tc::node {

class HandedCalls {
 public:
  HandedCalls(const Common& common, target::Executor& executor, Invocation& invocation, Codes& codes)
      : common_(common), executor_(executor), invocation_(invocation), codes_(codes) {}
  HandedCalls(const HandedCalls&) = delete;
  HandedCalls& operator=(const HandedCalls&) = delete;

  // So many at once, without a memory allocation in the end.
  void reserve(size_t calls) { calls_.reserve(calls); }
  // From here on the call is here, until end(). May throw std::bad_alloc; then nothing has happened.
  HandedCall& add(std::unique_ptr<HandedCall> handed);
  bool empty() const noexcept { return calls_.empty(); }
  size_t size() const noexcept { return calls_.size(); }
  // Of those that have no cell.
  size_t on_threads() const noexcept { return on_threads_; }
  // Does ordinary code run on another thread? Then no other ordinary code may, in this process.
  bool exclusive_runs() const noexcept { return exclusive_runs_; }
  // Has a call ended, or begun that waited, since take_freed() was called last? Then what was to wait may be placed anew.
  bool has_freed() const noexcept { return freed_; }
  bool take_freed() noexcept { return std::exchange(freed_, false); }
  void tell_freed() noexcept { freed_ = true; }
  void each_call(ShowCall show) const;
  void say_what_runs() const noexcept;
  // Of a call that has not begun, when the keyring was read again: its caller is told to call again.
  static bool may_have_other_rights(const HandedCall& handed) noexcept {
    const auto* const link = link_of(handed.call);
    return link == nullptr ? !handed.rights->is_all() : !link->receiver().is_unrestricted();
  }
  static Error rights_have_changed() {
    return {TC_ERR_DENIED, "what its sender may do here has changed before it ran: call again"};
  }

  // Of the code of calls.
  const target::CodeStore& store() const noexcept { return codes_.store(); }

  // ---- What a call says and asks

  void reply(HandedCall& handed, ByteView bytes) noexcept;
  tc_status_t forward(const CallEffects::Asker& asker, uint32_t node, ByteView payload) noexcept {
    return invocation_.effects().forward(asker, node, payload);
  }
  tc_status_t forward_as(const CallEffects::Asker& asker, uint32_t node, std::string_view name,
                         ByteView payload) noexcept {
    return invocation_.effects().forward_as(asker, node, name, payload);
  }
  tc_status_t inject(const CallEffects::Asker& asker, uint32_t node, std::string_view name, ByteView payload) noexcept {
    return invocation_.effects().inject(asker, node, name, payload);
  }
  bool may_touch(const CallEffects::Asker& asker, std::string_view data) noexcept {
    return invocation_.may_touch(asker, data);
  }

  // ---- Its end, after which it is gone

  // It has run: HandedCall::outcome says how.
  void end(HandedCall& handed);
  // It was not run, or did not come to its end; its caller is told why. What it sent before is not taken back.
  void fail(HandedCall& handed, const Error& why) noexcept;

 private:
  void count(HandedCall& handed) noexcept;
  static void measure(const HandedCall& handed) noexcept;
  void take_out(HandedCall& handed);
  void send(const HandedCall& handed, FunctionRef<void()> send) noexcept;

  const Common& common_;
  target::Executor& executor_;
  Invocation& invocation_;
  Codes& codes_;
  std::vector<std::unique_ptr<HandedCall>> calls_;
  size_t on_threads_ = 0;
  bool exclusive_runs_ = false;
  bool freed_ = false;
};

}  // namespace tc::node
