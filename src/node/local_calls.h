// SPDX-License-Identifier: Apache-2.0
//
// Calls of this node to itself: an ifunc forwards a call, or injects one, to the node that it runs on. They run from poll(),
// like calls that come by a link.
//
// Thread: the node's.
#pragma once

#include <optional>
#include <vector>

#include "base/memory_reserve.h"
#include "node/answers.h"
#include "node/code_loader.h"
#include "node/outgoing_call.h"

namespace tc::node {

class LocalCalls {
 public:
  LocalCalls(target::Executor& executor, CodeLoader& loader, Answers& answers, MemoryReserve& reserve)
      : executor_(executor), loader_(loader), answers_(answers), reserve_(reserve) {}

  void add(const OutgoingCall& call);
  bool empty() const noexcept { return ready_.empty(); }
  // Runs those that are there now: a call that calls itself again gets its turn with the next poll.
  void run();
  // What calls wait for was compiled elsewhere, or will never be.
  void on_compiled();
  void each_waiting(ShowCall show) const;

 private:
  struct Call {
    Bundle bundle;
    Bytes payload;
    wire::CallHeader header;
    std::optional<wire::PackedReturnAddress> return_address;
    const wire::ReturnAddress* route() const noexcept { return return_address ? &return_address->value() : nullptr; }
  };
  void run(Call& call);
  target::Code* code_of(Call& call);

  target::Executor& executor_;
  CodeLoader& loader_;
  Answers& answers_;
  MemoryReserve& reserve_;
  std::vector<Call> ready_;
  std::vector<Call> uncompiled_;  // their code is being compiled elsewhere
};

}  // namespace tc::node
