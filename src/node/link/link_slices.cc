// SPDX-License-Identifier: Apache-2.0
//
// Calls that wait until their code can be sent: for the greeting, which tells what the peer can run, or for slices
// that this node was not sent itself (slice_requests.h). And the questions for such slices.
#include <spdlog/logger.h>

#include <algorithm>

#include "node/link/link.h"
#include "node/node.h"

namespace tc::node {

namespace {
// Bounds what can wait for one peer.
constexpr size_t held_calls_limit = 4096;
constexpr size_t held_bytes_limit = 64u * 1024 * 1024;
}  // namespace

Status Link::hold(const Outgoing& call) {
  if (held_.size() >= held_calls_limit)
    return fail(TC_ERR_LIMIT, "{} calls wait for {} to answer, and at most {} may", held_.size(), peer_label(),
                held_calls_limit);
  if (!held_.empty() && held_bytes_ + call.payload.size() > held_bytes_limit)
    return fail(TC_ERR_LIMIT, "{} bytes wait for {} to answer, and at most {} may", held_bytes_, peer_label(),
                held_bytes_limit);
  Held held{*call.bundle, call.index, {}, {}, {}, now_ns(), {}};
  if (!held.charge.take(node_.buffers().budget(), call.payload.size()))
    return fail(TC_ERR_LIMIT, "{}", node_.no_memory_for_messages(call.payload.size()));
  held.payload.assign(call.payload.begin(), call.payload.end());
  held_bytes_ += call.payload.size();
  if (call.ticket != nullptr) held.ticket = *call.ticket;
  if (call.route != nullptr) held.route = *call.route;
  held_.push_back(std::move(held));
  update_open();
  return {};
}

// The ifunc was built for the peer's processor, but that part of it is not here.
bool Link::lacks_slices(const Bundle& bundle) const noexcept {
  return bundle.useful_for(peer_triple_) == 0 && bundle.lists(peer_triple_) &&
         codes_.number_of(bundle.id()) == source::CodeTable::none &&
         node_.slices().at_hand(bundle.id(), peer_triple_) == nullptr;
}

// For a call that lacks slices. Those behind it wait too, so that no call overtakes another.
Status Link::hold_for_slices(const Outgoing& call) {
  TC_CHECK(node_.slices().ask(*call.bundle, peer_triple_, {mark_, {}}));
  TC_CHECK(hold(call));
  held_.back().asked = true;
  return {};
}

// Can the call in front leave, be it as a refusal?
bool Link::may_leave(Held& call) {
  if (call.refused || !lacks_slices(call.bundle)) return true;
  if (call.asked) return false;
  const auto asked = node_.slices().ask(call.bundle, peer_triple_, {mark_, {}});
  call.asked = true;
  if (!asked) call.refused = asked.error();
  return !asked;
}

void Link::send_held() {
  while (!held_.empty() && state_ == State::ready && may_leave(held_.front())) {
    const auto call = std::move(held_.front());
    held_.pop_front();
    held_bytes_ -= call.payload.size();
    const auto* ticket = call.ticket ? &*call.ticket : nullptr;
    const auto* route = call.route ? &*call.route : nullptr;
    if (const auto sent = send_late(call, ticket, route); !sent) {
      node_.count_failure(sent.error());
      if (ticket != nullptr)
        node_.answer_for(ticket->token, route != nullptr ? &route->route() : nullptr, sent.error());
    }
  }
  update_open();
}

Status Link::send_late(const Held& call, const wire::CallTicket* ticket, const wire::PackedRoute* route) {
  if (call.refused) return fail(*call.refused);
  const auto waited_ms = (now_ns() - call.since_ns) / 1'000'000;
  if (ticket != nullptr && ticket->deadline_ms != 0 && waited_ms > ticket->deadline_ms)
    return fail(TC_ERR_TIMEOUT, "{} {} after {} ms when the call's deadline was {} ms", peer_label(),
                call.asked ? "could be sent its code" : "answered", waited_ms, ticket->deadline_ms);
  return send_now(
      {.bundle = &call.bundle, .index = call.index, .payload = call.payload, .ticket = ticket, .route = route},
      Deadline::after_ms(0));
}

void Link::on_slices(const ContentId& id, const std::optional<Error>& error) {
  for (auto& call : held_)
    if (error && call.asked && call.bundle.id() == id) call.refused = *error;
  send_held();
}

// ---- Questions

std::optional<uint32_t> Link::number_of_its(const ContentId& id) const noexcept {
  const auto found = std::ranges::find(meanings_, meaning_of(id));
  if (found == meanings_.end()) return std::nullopt;
  return static_cast<uint32_t>(found - meanings_.begin());
}

void Link::ask_for_slices(const ContentId& id, const TargetTriple& triple) {
  const auto number = number_of_its(id).value_or(0);
  asked_slices_ = AskedSlices{number, id};
  const auto body = wire::encode_need({id, triple.text});
  if (const auto sent = post(wire::Kind::need, number, body, wire::flag_for_another); !sent) hang_up(sent.error());
}

bool Link::on_slices_needed(uint32_t number, const wire::Need& need) {
  const auto* const id = codes_.id_of(number);
  const auto triple = TargetTriple::parse(need.triple);
  if (id == nullptr || *id != need.id || !triple)
    return on_broken(fmt::format("it asks for code number {} to pass on to '{}', which was never sent or no triple",
                                 number, need.triple)),
           false;
  const auto* const bundle = node_.bundle_of(need.id, *triple);
  if (bundle != nullptr && bundle->useful_for(*triple) != 0) return send_slices(number, need.id, bundle, *triple), true;
  if (bundle == nullptr || !bundle->lists(*triple) || !node_.slices().ask(*bundle, *triple, {mark_, number}))
    send_slices(number, need.id, nullptr, *triple);
  return true;
}

void Link::send_slices(uint32_t number, const ContentId& id, const Bundle* bundle, const TargetTriple& triple) {
  const auto which = bundle != nullptr ? bundle->useful_for(triple) : 0;
  const auto bytes = which != 0 ? bundle->bytes_for(which) : Bytes{};
  Bytes section;
  wire::append_code(section, {id, which, static_cast<uint32_t>(bytes.size())}, bytes);
  node_.count_code_sent(section.size());
  if (const auto sent = post(wire::Kind::code, number, section, wire::flag_for_another); !sent) hang_up(sent.error());
}

bool Link::on_slices_sent(uint32_t number, const wire::CodeBody& code) {
  if (!asked_slices_ || asked_slices_->number != number || asked_slices_->id != code.head.id)
    return on_broken(fmt::format("it sends code number {} to pass on, which nobody asked for", number)), false;
  asked_slices_.reset();
  if (code.bundle.empty())
    node_.slices().on_answer(*this, fail(TC_ERR_NO_SLICE, "it has none and could get none"));
  else
    node_.slices().on_answer(*this, Bundle::read_carried(code.bundle, code.head.carried, code.head.id));
  return true;
}

}  // namespace tc::node
