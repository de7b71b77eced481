// SPDX-License-Identifier: Apache-2.0
#include "node/answers.h"

#include <spdlog/logger.h>

#include "node/call_log.h"
#include "node/link/link.h"
#include "node/links.h"

namespace tc::node {

// A link that has not greeted yet will do. Another instance at that address means that the caller is gone: to connect
// again and again would change nothing. A connection is made only to an address that whoever named it may name.
Link* Answers::link_to(const wire::ReturnAddress& return_address, const wire::SharedChain& chain) {
  if (Link* const known = links_.ready_to(return_address, chain)) return known;
  if (return_address.address.empty()) return nullptr;
  if (Link* const other = links_.to_address(return_address.address)) return other->is_ready() ? nullptr : other;
  if (!return_address.may_connect && !links_.is_known(return_address.address)) return nullptr;
  auto reached = links_.reach_caller(return_address.address, chain);
  if (!reached) common_.log.info("an answer cannot be sent: {}", reached.error().message);
  return reached ? *reached : nullptr;
}

void Answers::send(Link* link, const wire::ReturnAddress* return_address, const wire::Reply& reply,
                   const wire::SharedChain& chain) {
  if (return_address != nullptr) {
    const bool is_ours = return_address->instance == common_.self.instance;
    link = is_ours ? nullptr : link_to(*return_address, chain);
    if (link == nullptr && !is_ours) {
      if (send_back(*return_address, reply)) return;
      return common_.call_log.warn(
          "lost answers",
          fmt::format("an answer is lost: node {} ({}) cannot be reached{}", return_address->node_id,
                      return_address->address,
                      return_address->may_connect || return_address->address.empty()
                          ? ""
                          : ", as the peer that named this address may not have this node connect to it, and is gone"));
    }
  }
  if (link != nullptr)
    link->post_reply(reply);
  else if (reply.token != 0)
    complete(reply);
  else
    common_.log.info("a call of this node's own failed: {}", reply.message);
}

// By the link that the call came by. The peer there passes the answer on to the caller.
bool Answers::send_back(const wire::ReturnAddress& return_address, const wire::Reply& reply) {
  Link* const link = return_address.came_by != 0 ? links_.with_id(return_address.came_by) : nullptr;
  if (link == nullptr) return false;
  if (link->peer().instance == return_address.instance)
    link->post_reply(reply);
  else
    link->post_reply_for(return_address, reply);
  return true;
}

void Answers::answer(const target::Call& call, const wire::Reply& reply) {
  if (call.has_return_address)
    send(link_of(call), &call.return_address.value(), reply, call.chain);
  else
    send(link_of(call), nullptr, reply);
}

bool Answers::send_if_connected(const wire::ReturnAddress& return_address, const wire::Reply& reply) {
  if (return_address.instance == common_.self.instance) return complete(reply), true;
  Link* const link = links_.ready_to(return_address);
  if (link != nullptr) link->post_reply(reply);
  return link != nullptr;
}

void Answers::pass_on(const wire::ReturnAddress& caller, const wire::Reply& reply, Link& from) {
  Link* const link = from.sender().has_called() ? links_.that_forwarded({reply.token, caller.instance}) : nullptr;
  if (link != nullptr)
    return link->peer().instance == caller.instance ? link->post_reply(reply) : link->post_reply_for(caller, reply);
  if (send_if_connected(caller, reply)) return;
  auto named = caller;
  named.may_connect = from.receiver().is_believed();
  if (named.may_connect) return send(nullptr, &named, reply);
  common_.log.info(
      "an answer to a call that was forwarded from here is lost: node {} ({}), which made it, is no peer: {}",
      caller.node_id, caller.address, reply.message);
}

// It failed, or owes an answer that its ifunc did not give.
void Answers::send_at_end(const target::Call& call) {
  wire::Reply reply;
  reply.token = call.header.token;
  reply.node_id = common_.self.wire_id();
  if (call.failed) {
    reply.status = TC_ERR_IFUNC;
    reply.code = call.fail_code;
    reply.message = fmt::format("{}: ifunc '{}' failed with code {}: {}", common_.self.label, call.code->name(),
                                call.fail_code, call.fail_message);
    common_.counters.failures.add_code();
    if (call.code->use != nullptr) ++call.code->use->failures;
    if (call.answered) reply.token = 0;  // too late for an answer; the failure is reported all the same
  } else if (call.lost_reply) {  // an ifunc that does not look at what tc_reply() returns would answer with nothing
    reply.status = TC_ERR_NO_MEMORY;
    reply.message =
        fmt::format("{}: there is no memory for the answer of ifunc '{}'", common_.self.label, call.code->name());
    common_.counters.failures.add(TC_ERR_NO_MEMORY);
    if (call.code->use != nullptr) ++call.code->use->failures;
  }
  answer(call, reply);
}

void Answers::fail_later(uint64_t token, const wire::ReturnAddress* return_address, const Error& error) {
  if (token == 0) return;
  pending_failures_.push_back(
      {return_address != nullptr ? std::optional(*return_address) : std::nullopt, token, error});
  common_.work.backlog = true;
}

void Answers::fail_forwarded(uint64_t token, const wire::ReturnAddress& return_address, const Error& error) {
  if (token == 0) return;
  fail_later(token, &return_address, error);  // it may throw: the call is still known then
  const auto* const link = links_.that_forwarded({token, return_address.instance});
  if (link == nullptr) return;
  auto& known = *pending_failures_.back().return_address;
  known.came_by = link->id();
  known.may_connect = link->receiver().is_believed();
}

void Answers::forget_forwarded(uint64_t token, const wire::ReturnAddress& return_address) {
  (void)links_.that_forwarded({token, return_address.instance});
}

void Answers::send_pending_failures() {
  while (!pending_failures_.empty()) {
    const auto& failure = pending_failures_.front();  // it stays until it is told
    wire::Reply reply;
    reply.token = failure.token;
    reply.status = failure.error.code;
    reply.node_id = common_.self.wire_id();
    reply.message = fmt::format("{}: {}", common_.self.label, failure.error.message);
    send(nullptr, failure.return_address ? &*failure.return_address : nullptr, reply);
    pending_failures_.pop_front();
  }
}

void Answers::complete(const wire::Reply& reply, PooledBuffer memory) {
  if (futures_.complete(reply, std::move(memory))) return;
  ++common_.counters.late_answers;
  common_.log.debug("an answer to call {} came when nobody waited for it any more", reply.token);
}

void Answers::count_failure(const Error& why, const target::Code* code) {
  common_.counters.failures.add(why.code);
  if (code != nullptr && code->use != nullptr) ++code->use->failures;
  common_.log.info("a call failed here: {}", why.message);
}

void Answers::each_pending(ShowCall show) const {
  for (const auto& failure : pending_failures_)
    show(failure.return_address ? failure.return_address->instance : common_.self.instance, failure.token);
}

}  // namespace tc::node
