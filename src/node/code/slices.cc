// SPDX-License-Identifier: Apache-2.0
#include "node/code/slices.h"

#include <spdlog/logger.h>

#include <algorithm>
#include <utility>

#include "node/links.h"

namespace tc::node {

namespace {
// Calls that wait for slices hold up those behind them: longer than a slow link needs, shorter than a person waits.
constexpr uint64_t patience_ns = 10'000'000'000;
}  // namespace

Link* SliceRequests::supplier_of(const ContentId& id, const std::vector<Requester>& requesters) const {
  const auto asks_us = [&](const Link& link) {
    return std::ranges::any_of(requesters, [&](const auto& one) { return one.number && one.link_id == link.id(); });
  };
  const auto first = suppliers_.find(id);
  Link* other = nullptr;
  Link* best = nullptr;
  links_.each([&](Link& link) {
    if (!link.is_ready() || asks_us(link) || !link.receiver().number_of(id)) return;
    if (first != suppliers_.end() && link.id() == first->second)
      best = &link;
    else if (other == nullptr)
      other = &link;
  });
  return best != nullptr ? best : other;
}

Status SliceRequests::ask(const Bundle& bundle, const TargetTriple& triple, Requester requester) {
  const auto asking_link = requester.number ? requester.link_id : 0;
  for (auto& request : open_)
    if (request.id == bundle.id() && request.triple.text == triple.text && request.supplier != asking_link) {
      request.requesters.push_back(requester);
      return {};
    }
  auto* const supplier = supplier_of(bundle.id(), {requester});
  const auto& name = bundle.manifest().name;
  if (supplier == nullptr)
    return fail(TC_ERR_NO_SLICE, "{} was not sent the code of ifunc '{}' for {}, and whoever sent it the rest is gone",
                common_.self.label, name, triple.text);
  open_.push_back({bundle.id(), name, triple, supplier->id(), false, now_ns(), {requester}});
  ++common_.counters.slice_requests;
  send_next(*supplier);
  return {};
}

// A link that was answered, or had nothing open, gets the next question.
void SliceRequests::send_next(Link& link) {
  for (auto& request : open_) {
    if (request.supplier != link.id()) continue;
    if (request.sent) return;
    request.sent = true;
    return link.slices().ask(request.id, request.triple);
  }
}

void SliceRequests::on_answer(const Channel& from, Result<Bundle> answer) {
  const auto found =
      std::ranges::find_if(open_, [&](const auto& request) { return request.supplier == from.id() && request.sent; });
  if (found == open_.end()) return;
  std::optional<Error> error;
  if (!answer) {
    error = Error{TC_ERR_NO_SLICE, fmt::format("no slice of ifunc '{}' for {} could be had from {}: {}", found->name,
                                               found->triple.text, from.peer_label(), answer.error().message)};
  } else if (codes_.find(found->id) != nullptr) {
    // The store keeps them beside its own, and counts them.
    if (const auto kept = codes_.store().hold(std::move(*answer)); !kept) error = kept.error();
  } else {
    error = Error{TC_ERR_NO_SLICE, fmt::format("ifunc '{}' was evicted while its code for {} was on its way",
                                               found->name, found->triple.text)};
  }
  end(*found, error);
  open_.erase(found);
  if (auto* link = links_.with_id(from.id())) send_next(*link);
}

void SliceRequests::end(Request& request, const std::optional<Error>& error) {
  for (const auto& requester : std::exchange(request.requesters, {}))
    ended_.push_back({request.id, requester, request.triple, error});
  if (!ended_.empty()) common_.work.backlog = true;
}

void SliceRequests::on_link_lost(const Link& lost) {
  for (auto& request : std::exchange(open_, {})) {
    if (request.supplier != lost.id()) {
      open_.push_back(std::move(request));
      continue;
    }
    if (auto* const other = supplier_of(request.id, request.requesters)) {
      request.supplier = other->id();
      request.sent = false;
      open_.push_back(std::move(request));
      send_next(*other);
      continue;
    }
    end(request, Error{TC_ERR_NO_SLICE,
                       fmt::format("{} asked {}, which had sent ifunc '{}', for its code for {}, and lost it: {}",
                                   common_.self.label, lost.peer_label(), request.name, request.triple.text,
                                   lost.reason().message)});
  }
}

void SliceRequests::tick() {
  if (open_.empty()) return;
  const auto now = now_ns();
  for (auto& request : open_) {
    if (request.requesters.empty() || now - request.since_ns < patience_ns) continue;
    const auto* const supplier = links_.with_id(request.supplier);
    end(request,
        Error{TC_ERR_TIMEOUT, fmt::format("{} has not sent the code of ifunc '{}' for {} within {} s",
                                          supplier != nullptr ? supplier->peer_label() : "the node it came from",
                                          request.name, request.triple.text, patience_ns / 1'000'000'000)});
  }
}

bool SliceRequests::deliver() {
  const auto ended = std::exchange(ended_, {});
  for (const auto& one : ended) {
    auto* const link = links_.with_id(one.requester.link_id);
    if (link == nullptr) continue;
    if (!one.requester.number) {
      link->sender().on_slices(one.id, one.error);
      continue;
    }
    if (one.error)
      common_.log.info("{} is told that there is no code for {}: {}", link->peer_label(), one.triple.text,
                       one.error->message);
    link->slices().send(*one.requester.number, one.id, one.error ? nullptr : codes_.runnable_on(one.triple, one.id),
                        one.triple);
  }
  return !ended.empty();
}

// ---- One link

void SliceExchange::ask(const ContentId& id, const TargetTriple& triple) {
  const auto number = receiver_.number_of(id).value_or(0);
  open_ = Question{number, id};
  channel_.post_or_disconnect(wire::Kind::need, wire::flag_for_another, number, wire::encode_need({id, triple.text}));
}

bool SliceExchange::on_question(uint32_t number, const wire::Need& need) {
  const auto* const id = sender_.id_of(number);
  const auto triple = TargetTriple::parse(need.triple);
  if (id == nullptr || *id != need.id || !triple)
    return channel_.disconnect_for(fmt::format(
        "it asks for code number {} to pass on to '{}', which was never sent or no triple", number, need.triple));
  const auto* const bundle = codes_.bundle_for(*triple, need.id);
  if (bundle != nullptr && bundle->useful_for(*triple) != 0) return send(number, need.id, bundle, *triple), true;
  if (bundle == nullptr || !bundle->lists(*triple) || !requests_.ask(*bundle, *triple, {channel_.id(), number}))
    send(number, need.id, nullptr, *triple);
  return true;
}

void SliceExchange::send(uint32_t number, const ContentId& id, const Bundle* bundle, const TargetTriple& triple) {
  const auto which = bundle != nullptr ? bundle->useful_for(triple) : 0;
  const auto bytes = which != 0 ? bundle->bytes_for(which) : Bytes{};
  Bytes section;
  wire::append_code(section, {id, which, static_cast<uint32_t>(bytes.size())}, bytes);
  codes_.count_sent(section.size());
  channel_.post_or_disconnect(wire::Kind::code, wire::flag_for_another, number, section);
}

bool SliceExchange::on_answer(uint32_t number, const wire::CodeBody& code) {
  if (!open_ || open_->number != number || open_->id != code.head.id)
    return channel_.disconnect_for(fmt::format("it sends code number {} to pass on, which nobody asked for", number));
  open_.reset();
  if (code.bundle.empty())
    requests_.on_answer(channel_, fail(TC_ERR_NO_SLICE, "it has none and could get none"));
  else
    requests_.on_answer(channel_, Bundle::read_carried(code.bundle, code.head.carried, code.head.id));
  return true;
}

}  // namespace tc::node
