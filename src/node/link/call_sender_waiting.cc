// SPDX-License-Identifier: Apache-2.0
//
// Calls that wait until their code can be sent: for the greeting, which tells what the peer can run, or for slices
// that this node was not sent itself (slice_requests.h).
#include <spdlog/logger.h>

#include "base/clock.h"
#include "node/link/call_sender.h"
#include "node/link/slice_requests.h"

namespace tc::node {

namespace {
// Bounds what can wait for one peer.
constexpr size_t calls_limit = 4096;
constexpr size_t bytes_limit = 64u * 1024 * 1024;
}  // namespace

OutgoingCall CallSender::Waiting::outgoing() const noexcept {
  return {.bundle = &bundle,
          .index = index,
          .payload = payload,
          .header = header ? &*header : nullptr,
          .return_address = return_address ? &*return_address : nullptr,
          .chain = chain != nullptr ? &chain : nullptr};
}

Status CallSender::wait(const OutgoingCall& call) {
  const auto size = call.payload.size();
  if (awaiting_slices_.size() >= calls_limit)
    return fail(TC_ERR_LIMIT, "{} calls wait for {} to answer, and at most {} may", awaiting_slices_.size(),
                channel_.peer_label(), calls_limit);
  if (!awaiting_slices_.empty() && awaiting_bytes_ + size > bytes_limit)
    return fail(TC_ERR_LIMIT, "{} bytes wait for {} to answer, and at most {} may", awaiting_bytes_,
                channel_.peer_label(), bytes_limit);
  Waiting waiting{*call.bundle, call.index, {}, {}, {}, call.shared_chain(), now_ns(), {}};
  TC_CHECK(channel_.charge(waiting.charge, size));
  waiting.payload.assign(call.payload.begin(), call.payload.end());
  if (call.header != nullptr) waiting.header = *call.header;
  if (call.return_address != nullptr) waiting.return_address = *call.return_address;
  awaiting_slices_.push_back(std::move(waiting));
  awaiting_bytes_ += size;
  channel_.set_calls_wait(true);
  return {};
}

// The ifunc was built for the peer's CPU, but that part of it is not here.
bool CallSender::lacks_slices(const Bundle& bundle) const noexcept {
  const auto& triple = channel_.peer_triple();
  return bundle.useful_for(triple) == 0 && bundle.lists(triple) &&
         codes_.number_of(bundle.id()) == source::CodeTable::none && code_.runnable_on(triple, bundle.id()) == nullptr;
}

Status CallSender::ask_for_slices(const Bundle& bundle) {
  return slices_.ask(bundle, channel_.peer_triple(), {channel_.id(), {}});
}

// For a call that lacks slices. Those behind it wait too, so that no call overtakes another.
Status CallSender::wait_for_slices(const OutgoingCall& call) {
  TC_CHECK(ask_for_slices(*call.bundle));
  TC_CHECK(wait(call));
  awaiting_slices_.back().asked = true;
  return {};
}

// Can the call in front leave, be it as a refusal?
bool CallSender::may_leave(Waiting& call) {
  if (call.refused || !lacks_slices(call.bundle)) return true;
  if (call.asked) return false;
  const auto asked = ask_for_slices(call.bundle);
  call.asked = true;
  if (!asked) call.refused = asked.error();
  return !asked;
}

void CallSender::send_waiting() {
  while (!awaiting_slices_.empty() && channel_.is_ready() && may_leave(awaiting_slices_.front())) {
    const auto call = std::move(awaiting_slices_.front());
    awaiting_slices_.pop_front();
    awaiting_bytes_ -= call.payload.size();
    if (const auto sent = send_late(call); !sent) {
      answers_.count_failure(sent.error());
      if (call.header)
        answers_.fail_later(call.header->token, call.route(), sent.error());
      else
        record_failure(sent.error());
    }
  }
  channel_.set_calls_wait(!awaiting_slices_.empty());
}

Status CallSender::send_late(const Waiting& call) {
  if (call.refused) return fail(*call.refused);
  const auto waited_ms = (now_ns() - call.since_ns) / 1'000'000;
  const auto deadline_ms = call.header ? call.header->deadline_ms : 0;
  if (deadline_ms != 0 && waited_ms > deadline_ms)
    return fail(TC_ERR_TIMEOUT, "{} {} after {} ms when the call's deadline was {} ms", channel_.peer_label(),
                call.asked ? "could be sent its code" : "answered", waited_ms, deadline_ms);
  return send_now(call.outgoing(), Deadline::after_ms(0));
}

void CallSender::on_slices(const ContentId& id, const std::optional<Error>& error) {
  for (auto& call : awaiting_slices_)
    if (error && call.asked && call.bundle.id() == id) call.refused = *error;
  send_waiting();
}

void CallSender::each_waiting(ShowCall show) const {
  for (const auto& call : awaiting_slices_)
    if (call.header && call.header->token != 0)
      show(call.return_address ? call.route()->instance : answers_.own_instance(), call.header->token);
}

void CallSender::fail_waiting(const Error& reason) {
  for (; !awaiting_slices_.empty(); awaiting_slices_.pop_front())
    if (const auto& call = awaiting_slices_.front(); call.header)
      answers_.fail_later(call.header->token, call.route(), reason);
}

}  // namespace tc::node
