// SPDX-License-Identifier: Apache-2.0
//
// Calls of this node to itself: an ifunc forwards a call, or injects one, to the node that it runs on. They run from poll(),
// like calls that come by a link.
//
// Thread: the node's.
#pragma once

#include <deque>
#include <optional>

#include "node/answers.h"
#include "node/authority.h"
#include "node/code/node_code.h"
#include "node/outgoing_call.h"

namespace tc::node {

class CallPlaces;

class LocalCalls {
 public:
  LocalCalls(const Common& common, target::Executor& executor, NodeCode& code, Authority& authority, Answers& answers)
      : common_(common), executor_(executor), code_(code), authority_(authority), answers_(answers) {}

  // Where calls may run besides the node's thread. Before the first call.
  void use(CallPlaces& places) noexcept { places_ = &places; }

  // The call must have a header, as those of running ifuncs do. `rights`: of the code that makes the call. The code that is
  // called may do no more for the same peer. `share`: of the key on whose behalf it is made, in `message-memory`; null: it has none
  // of its own. TC_ERR_LIMIT: too much waits.
  Status add(const OutgoingCall& call, trust::SharedRights rights, const std::shared_ptr<MemoryBudget>& share);
  // Number of calls that wait for a thread or a cell.
  size_t awaiting_worker() const noexcept { return awaits_worker_ ? ready_.size() : 0; }
  // Are there some that can run now?
  bool has_ready() const noexcept { return (!ready_.empty() && !awaits_worker_) || failed_; }
  // Number of all that wait.
  size_t waiting() const noexcept { return ready_.size() + uncompiled_.size() + (failed_ ? 1 : 0); }
  // Runs those that are there now, as long as their turn lasts: a call that calls itself again runs with the next poll.
  void run();
  // Of the call that runs.
  const trust::SharedRights& running_rights() const noexcept { return running_rights_; }
  // A call on another thread has ended: the first one may run now, if it waited for that.
  void on_worker_free() noexcept { awaits_worker_ = false; }
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
    Charge charge;
    // Null: this node made the call.
    const wire::ReturnAddress* caller() const noexcept { return return_address ? &return_address->value() : nullptr; }
  };
  void run(Call& call);
  void fail(const Call& call, const Error& why);
  void tell_failed();
  void set_running(const Call& local);
  void hand_over(Call& local, target::Code& code, bool in_cell);
  Result<trust::SharedRights> rights_of(const Call& call) const;
  target::Code* code_of(Call& call, const trust::SharedRights& rights);

  const Common& common_;
  target::Executor& executor_;
  NodeCode& code_;
  Authority& authority_;
  Answers& answers_;
  CallPlaces* places_ = nullptr;
  trust::SharedRights running_rights_;
  std::deque<Call> ready_;
  bool awaits_worker_ = false;   // the first of them
  std::deque<Call> uncompiled_;  // their code is being compiled elsewhere
  std::optional<Call> failed_;   // for lack of memory, and its caller is not told yet
};

}  // namespace tc::node
