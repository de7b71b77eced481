// SPDX-License-Identifier: Apache-2.0
#include "cell/conversation.h"

#include <iterator>
#include <utility>

#include "wire/abi_names.h"
#include "wire/text.h"

namespace tc::cell {

namespace {

template <class T>
Result<Event> as_event(Result<T> decoded) {
  if (!decoded) return fail(std::move(decoded).error());
  return Event(std::move(*decoded));
}

Result<Event> out_of_place(const Channel::Message& message) {
  return fail(TC_ERR_MALFORMED, "it sent a message of kind {} of call {}, when none such was due", message.kind,
              message.number);
}

}  // namespace

uint32_t Conversation::begin(bool wants_reply) noexcept {
  call_number_ = (call_number_ + 1) & wire::max_number;
  wants_reply_ = wants_reply;
  is_replied_ = is_asked_ = false;
  state_ = State::running;
  return call_number_;
}

bool Conversation::answer(bool replies) noexcept {
  if (!std::exchange(is_asked_, false)) return false;
  if (replies) is_replied_ = true;
  return true;
}

Result<Event> Conversation::read(const Channel::Message& message) {
  const auto kind = static_cast<ToNode>(message.kind);
  if (state_ == State::starting) return kind == ToNode::ready ? read_ready(message.body) : out_of_place(message);
  if (kind == ToNode::mapped) {
    if (awaited_mapped_ == 0) return out_of_place(message);
    --awaited_mapped_;
    return as_event(decode_mapped(message.body));
  }
  if (kind == ToNode::resolved) {
    if (awaited_resolved_ == 0) return out_of_place(message);
    --awaited_resolved_;
    return as_event(decode_resolved(message.body));
  }
  if (state_ != State::running || message.number != call_number_ || is_asked_) return out_of_place(message);
  return read_of_call(kind, message);
}

Result<Event> Conversation::read_ready(ByteView body) {
  const size_t functions = std::size(abi_names::functions), runtime = std::size(abi_names::compiler_runtime);
  TC_ASSIGN(auto ready, decode_ready(body));
  if (ready.functions.size() != functions || ready.runtime.size() != runtime)
    return fail(TC_ERR_MALFORMED, "it has {} and {} functions when this node knows {} and {}", ready.functions.size(),
                ready.runtime.size(), functions, runtime);
  ready.lacks = wire::words(ready.lacks);
  state_ = State::idle;
  return Event(std::move(ready));
}

Result<Event> Conversation::read_of_call(ToNode kind, const Channel::Message& message) {
  switch (kind) {
    case ToNode::reply:
      if (!wants_reply_ || std::exchange(is_replied_, true)) return out_of_place(message);
      return Event(Reply{message.body});
    case ToNode::log: return as_event(decode_log(message.body));
    case ToNode::ask: is_asked_ = true; return as_event(decode_ask(message.body));
    case ToNode::ended: state_ = State::idle; return as_event(decode_ended(message.body));
    default: return out_of_place(message);
  }
}

}  // namespace tc::cell
