// SPDX-License-Identifier: Apache-2.0
//
// Calls of this node to itself: an ifunc forwards a call, or injects one, to the node that it runs on. They run from poll(),
// like calls that come by a link.
//
// Thread: the node's.
#pragma once

#include <deque>
#include <optional>

#include "base/memory_reserve.h"
#include "node/answers.h"
#include "node/authority.h"
#include "node/code/node_code.h"
#include "node/outgoing_call.h"

namespace tc::node {

class LocalCalls {
 public:
  LocalCalls(target::Executor& executor, NodeCode& code, Authority& authority, Answers& answers, MemoryReserve& reserve)
      : executor_(executor), code_(code), authority_(authority), answers_(answers), reserve_(reserve) {}

  // The call must have a header, as those of running ifuncs do. `rights`: of the code that makes the call. The code that is
  // called may do no more for the same peer.
  void add(const OutgoingCall& call, trust::SharedRights rights);
  bool empty() const noexcept { return ready_.empty(); }
  // Runs those that are there now, as long as their turn lasts: a call that calls itself again runs with the next poll.
  void run();
  // Of the call that runs.
  const trust::SharedRights& running_rights() const noexcept { return running_rights_; }
  // What calls wait for was compiled elsewhere, or will never be.
  void on_compiled();
  void each_waiting(ShowCall show) const;

 private:
  struct Call {
    Bundle bundle;
    Bytes payload;
    wire::CallHeader header;
    std::optional<wire::PackedReturnAddress> return_address;
    trust::SharedRights rights;
    // Null: this node made the call.
    const wire::ReturnAddress* caller() const noexcept { return return_address ? &return_address->value() : nullptr; }
  };
  void run(Call& call);
  Result<trust::SharedRights> rights_of(const Call& call) const;
  target::Code* code_of(Call& call, const trust::SharedRights& rights);

  target::Executor& executor_;
  NodeCode& code_;
  Authority& authority_;
  Answers& answers_;
  MemoryReserve& reserve_;
  trust::SharedRights running_rights_;
  std::deque<Call> ready_;
  std::deque<Call> uncompiled_;  // their code is being compiled elsewhere
};

}  // namespace tc::node
