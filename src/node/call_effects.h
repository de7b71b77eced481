// SPDX-License-Identifier: Apache-2.0
//
// What a running call does to others: its answer, its failure, and the calls that it makes to other nodes. Invocation asks for
// that on behalf of a call on the node's own thread, Workers on behalf of one on another thread, which waits meanwhile.
//
// Thread: the node's, but for what says otherwise.
#pragma once

#include <string_view>

#include "node/local_calls.h"

namespace tc::node {

class CallEffects {
 public:
  CallEffects(const Common& common, Answers& answers, Links& links, LocalCalls& local, Codes& codes)
      : common_(common), answers_(answers), links_(links), local_(local), codes_(codes) {}

  // The call that asks, and what it may do.
  struct Asker {
    target::Call& call;
    const trust::SharedRights& rights;
  };

  // As target::IfuncHost has them. No exception leaves them.
  tc_status_t reply(target::Call& call, ByteView bytes) noexcept;
  tc_status_t forward(const Asker& asker, uint32_t node, ByteView payload) noexcept;
  tc_status_t forward_as(const Asker& asker, uint32_t node, std::string_view name, ByteView payload) noexcept;
  tc_status_t inject(const Asker& asker, uint32_t node, std::string_view name, ByteView payload) noexcept;
  // The answer of a call that has one caller waiting, and no effects besides.
  void send_reply(const target::Call& call, ByteView bytes);

  // The call has ended: what it still owes is sent.
  void end(const target::Call& call) { answers_.end_call(call); }
  // It was not run.
  void refuse(const target::Call& call, const Error& why);
  // Its caller is told with the next poll that it failed.
  void fail_later(const target::Call& call, const Error& why) {
    answers_.fail_later(call.header.token, call.has_return_address ? &call.return_address.value() : nullptr, why);
  }

  // The thread that runs the call.
  static void fail(target::Call& call, int32_t code, std::string_view message) noexcept;

 private:
  tc_status_t send(const Asker& asker, uint32_t node, OutgoingCall call);
  tc_status_t forward_call(const Asker& asker, uint32_t node, OutgoingCall call);
  tc_status_t inject_call(const Asker& asker, uint32_t node, std::string_view name, ByteView payload);
  wire::CallHeader header_of(const target::Call& call) const noexcept;
  wire::PackedReturnAddress caller_of(const target::Call& call) const;

  const Common& common_;
  Answers& answers_;
  Links& links_;
  LocalCalls& local_;
  Codes& codes_;
};

}  // namespace tc::node
