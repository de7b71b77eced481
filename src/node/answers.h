// SPDX-License-Identifier: Apache-2.0
//
// How the outcome of a call gets to the process that made it: by the link that the call came by, by a return address when
// the call was forwarded, or straight to a future of this node.
//
// Thread: the node's.
#pragma once

#include <deque>
#include <optional>

#include "base/buffer_pool.h"
#include "base/function_ref.h"
#include "node/common.h"
#include "node/future.h"
#include "target/executor.h"
#include "wire/frame.h"

namespace tc::node {

class Link;
class Links;

// Shows a call that waits for an answer: the instance of the node that made it, and the token of its answer.
using ShowCall = FunctionRef<void(uint64_t caller, uint64_t token)>;

class Answers {
 public:
  Answers(const Common& common, Links& links, FutureTable& futures)
      : common_(common), links_(links), futures_(futures) {}

  // Sends a reply: to the return address when there is one, else by `link`, else (null) to this node.
  // `chain`: on whose behalf the call was made; the node there may have the first key of it, known here or not.
  void send(Link* link, const wire::ReturnAddress* return_address, const wire::Reply& reply,
            const wire::SharedChain& chain = nullptr);
  // Sends the reply to the caller of a call that runs.
  void answer(const target::Call& call, const wire::Reply& reply);
  // Sends a reply without connecting to anybody. False: the node at the return address is neither this one nor one that this
  // one has a link with.
  bool send_if_connected(const wire::ReturnAddress& return_address, const wire::Reply& reply);
  // A peer answers a call that went on from here and is not ours: the answer goes back by the link that the call came by, or
  // to the caller. Only a peer that is believed makes us connect for that.
  void pass_on(const wire::ReturnAddress& caller, const wire::Reply& reply, Link& from);
  // The call ended: what it still owes is sent.
  void end_call(const target::Call& call) {
    if (call.failed || (call.wants_reply && !call.answered)) send_at_end(call);
  }
  // The same for the running call; the executor is ready for the next one.
  void end_running_call(target::Executor& executor) {
    end_call(executor.running());
    executor.reset();
  }
  // A call that was not run fails. The next poll tells its caller, because that may need a connection.
  void fail_later(uint64_t token, const wire::ReturnAddress* return_address, const Error& error);
  // The same of a call that was forwarded from here and did not leave.
  void fail_forwarded(uint64_t token, const wire::ReturnAddress& return_address, const Error& error);
  // That call did not go on, and its caller is told: no answer to it will come by.
  void forget_forwarded(uint64_t token, const wire::ReturnAddress& return_address);
  void send_pending_failures();
  // An answer to a call of this node came. `memory`: where its bytes lie, when that is a buffer; the future keeps it.
  void complete(const wire::Reply& reply, PooledBuffer memory = {});
  // A call failed here: counts it, and logs why. `code`: that it called; null: it is not here.
  void count_failure(const Error& why, const target::Code* code);
  // Failures that have not been sent yet.
  void each_pending(ShowCall show) const;
  size_t pending() const noexcept { return pending_failures_.size(); }
  // The caller of this node's own calls.
  uint64_t own_instance() const noexcept { return common_.self.instance; }

 private:
  void send_at_end(const target::Call& call);
  Link* link_to(const wire::ReturnAddress& return_address, const wire::SharedChain& chain);
  bool send_back(const wire::ReturnAddress& return_address, const wire::Reply& reply);

  struct PendingFailure {
    std::optional<wire::ReturnAddress> return_address;
    uint64_t token;
    Error error;
  };

  const Common& common_;
  Links& links_;
  FutureTable& futures_;
  std::deque<PendingFailure> pending_failures_;
};

}  // namespace tc::node
