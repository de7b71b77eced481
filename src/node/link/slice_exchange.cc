// SPDX-License-Identifier: Apache-2.0
#include "node/link/slice_exchange.h"

#include "node/link/slice_requests.h"

namespace tc::node {

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
  const auto* const bundle = code_.bundle_for(*triple, need.id);
  if (bundle != nullptr && bundle->useful_for(*triple) != 0) return send(number, need.id, bundle, *triple), true;
  if (bundle == nullptr || !bundle->lists(*triple) || !slices_.ask(*bundle, *triple, {channel_.id(), number}))
    send(number, need.id, nullptr, *triple);
  return true;
}

void SliceExchange::send(uint32_t number, const ContentId& id, const Bundle* bundle, const TargetTriple& triple) {
  const auto which = bundle != nullptr ? bundle->useful_for(triple) : 0;
  const auto bytes = which != 0 ? bundle->bytes_for(which) : Bytes{};
  Bytes section;
  wire::append_code(section, {id, which, static_cast<uint32_t>(bytes.size())}, bytes);
  counters_.code_bytes_sent += section.size();
  channel_.post_or_disconnect(wire::Kind::code, wire::flag_for_another, number, section);
}

bool SliceExchange::on_answer(uint32_t number, const wire::CodeBody& code) {
  if (!open_ || open_->number != number || open_->id != code.head.id)
    return channel_.disconnect_for(fmt::format("it sends code number {} to pass on, which nobody asked for", number));
  open_.reset();
  if (code.bundle.empty())
    slices_.on_answer(channel_, fail(TC_ERR_NO_SLICE, "it has none and could get none"));
  else
    slices_.on_answer(channel_, Bundle::read_carried(code.bundle, code.head.carried, code.head.id));
  return true;
}

}  // namespace tc::node
