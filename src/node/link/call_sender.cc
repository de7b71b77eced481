// SPDX-License-Identifier: Apache-2.0
//
// Calls that leave, and the code that they need at the peer.
#include "node/link/call_sender.h"

#include <spdlog/logger.h>

namespace tc::node {

CallSender::CallSender(Channel& channel, const LinkServices& services)
    : channel_(channel),
      code_(services.code),
      slices_(services.slices),
      answers_(services.answers),
      counters_(services.counters),
      log_(services.channel.log) {}

// Finds the header for a message that another link, or none, sent last. False: not now, or not in one frame. A message
// that is too long for the peer or the stream is never prepared, so nobody who sends a prepared one checks its length:
// what both take does not change as long as a version is open.
bool CallSender::prepare(source::Message& message) const noexcept {
  const auto number = codes_.number_of(message.index());
  if (!channel_.may_leave(message.size()) || number == source::CodeTable::none) return false;
  message.prepared_for = channel_.version();
  message.prepared_header = wire::encode(wire::Kind::call, 0, number, static_cast<uint32_t>(message.size()));
  return true;
}

size_t CallSender::try_send(source::Message* const* messages, size_t count) noexcept {
  transport::OutStream::Burst burst(channel_.out());
  size_t sent = 0;
  for (; sent < count; ++sent) {
    auto& message = *messages[sent];
    if (message.prepared_for != channel_.open_version() && !prepare(message)) break;
    if (!burst.add(message.prepared_header, message.payload())) break;
  }
  burst.publish();
  return sent;
}

bool CallSender::try_send(const OutgoingCall& call) noexcept {
  if (last_number_ == source::CodeTable::none) return false;
  if (call.code != nullptr ? call.code != last_code_ : call.bundle->id() != last_id_) return false;
  if (last_chain_ != (call.chain != nullptr ? call.chain->get() : nullptr)) return false;
  const bool is_forwarded = call.return_address != nullptr;
  const auto return_address = is_forwarded ? call.return_address->bytes() : ByteView{};
  const size_t size = wire::call_header_bytes + return_address.size() + call.payload.size();
  std::byte* const at = channel_.reserve(size);
  if (at == nullptr) return false;
  std::byte* to = at + wire::header_bytes;
  wire::write_call_header(to, *call.header);
  to += wire::call_header_bytes;
  for (const auto part : {return_address, call.payload}) {
    if (!part.empty()) std::memcpy(to, part.data(), part.size());
    to += part.size();
  }
  const auto flags = static_cast<uint8_t>(wire::flag_call_header | (is_forwarded ? wire::flag_return_address : 0));
  channel_.out().commit(wire::encode(wire::Kind::call, flags, last_number_, static_cast<uint32_t>(size)));
  return true;
}

Status CallSender::send(const OutgoingCall& call, Deadline deadline) {
  if (call.header != nullptr && !call.with_code && try_send(call)) return {};
  if (channel_.is_lost()) return fail(channel_.reason());
  // Which slices are of use is known only after the greeting; until then nothing is numbered.
  if (!channel_.is_ready() || !awaiting_slices_.empty()) return wait(call);
  if (lacks_slices(*call.bundle)) return wait_for_slices(call);
  return send_now(call, deadline);
}

Status CallSender::send_now(const OutgoingCall& call, Deadline deadline) {
  bool is_new = false;
  TC_ASSIGN(const auto number, number_for(call, is_new));
  const bool with_code = is_new || call.with_code;
  const auto header = call.header != nullptr ? wire::bytes_of(*call.header) : ByteView{};
  const auto return_address = call.return_address != nullptr ? call.return_address->bytes() : ByteView{};
  const auto section = with_code ? section_for(*call.bundle, call.shared_chain()) : nullptr;
  const ByteView code = section != nullptr ? ByteView(*section) : ByteView{};
  const auto size = header.size() + return_address.size() + code.size() + call.payload.size();
  if (size > channel_.peer().max_message) {
    if (is_new) codes_.give_back(number);
    return fail(TC_ERR_TOO_LARGE, "ifunc '{}' with its payload is {} bytes when {} takes at most {}",
                call.bundle->manifest().name, size, channel_.peer_label(), channel_.peer().max_message);
  }
  const auto flags = static_cast<uint8_t>((call.header != nullptr ? wire::flag_call_header : 0) |
                                          (call.return_address != nullptr ? wire::flag_return_address : 0));
  const auto resends = resends_;
  auto sent = channel_.post_in_time(with_code ? wire::Kind::call_code : wire::Kind::call, flags, number,
                                    {header, return_address, code, call.payload}, deadline);
  if (!sent) {
    if (is_new) codes_.give_back(number);
    return sent;
  }
  if (is_new && resends == resends_) codes_.set_sent(number, call.index);
  counters_.code_bytes_sent += code.size();
  if (!with_code) {
    last_id_ = call.bundle->id();
    last_code_ = call.code;
    last_number_ = number;
    last_chain_ = codes_.chain_of(number).get();
  }
  return {};
}

// ---- Failures

void CallSender::record_failure(const Error& failure) {
  if (first_failure_)
    ++more_failures_;
  else
    first_failure_ = failure;
}

std::optional<Error> CallSender::take_failure() {
  auto failure = std::exchange(first_failure_, std::nullopt);
  if (failure && more_failures_ != 0) failure->message += fmt::format(" (and {} more calls failed)", more_failures_);
  more_failures_ = 0;
  return failure;
}

// ---- Numbers

Result<uint32_t> CallSender::number_for(const OutgoingCall& call, bool& is_new) {
  is_new = false;
  auto chain = call.shared_chain();
  if (const auto number = codes_.number_of(call.bundle->id(), chain); number != source::CodeTable::none) {
    codes_.alias(call.index, number);
    return number;
  }
  // A lack that the source can see is told at once; the target checks again.
  const auto& triple = channel_.peer_triple();
  if (!call.bundle->lists(triple))
    return fail(TC_ERR_NO_SLICE, "ifunc '{}' holds no code for {}, which is {}; build it with --target {}",
                call.bundle->manifest().name, channel_.peer_label(), triple.text, triple.text);
  is_new = true;
  code_.keep_sent(triple, *call.bundle);
  return codes_.assign(call.bundle->id(), call.index, std::move(chain));
}

std::shared_ptr<const Bytes> CallSender::section_for(const Bundle& bundle, const wire::SharedChain& chain) {
  auto section = code_.section_for(channel_.peer_triple(), bundle);
  if (chain == nullptr) return section;
  return std::make_shared<const Bytes>(wire::with_chain(*section, *chain));
}

// The code has to be sent again, or cannot be: the next call of it takes a new number.
void CallSender::withdraw(uint32_t number) {
  codes_.withdraw(number);
  on_withdrawn(number);
}

void CallSender::on_withdrawn(uint32_t number) noexcept {
  channel_.renew_version();
  if (last_number_ == number) last_number_ = source::CodeTable::none;
}

void CallSender::send_again(const ContentId& id) {
  ++resends_;
  codes_.withdraw_all(id, [this](uint32_t number) { on_withdrawn(number); });
}

bool CallSender::on_known(uint32_t number) {
  if (codes_.id_of(number) != nullptr) return true;  // nothing waits for it
  return channel_.disconnect_for(fmt::format("it claims to know code number {}, which was never sent", number));
}

bool CallSender::on_need(uint32_t number) {
  const auto* const id = codes_.id_of(number);
  if (id == nullptr)
    return channel_.disconnect_for(fmt::format("it asks for code number {}, which was never sent", number));
  const auto* const bundle = code_.bundle_for(channel_.peer_triple(), *id);
  if (bundle == nullptr) return deny(number, *id), true;
  log_.info("{} asks for the code of ifunc '{}' again", channel_.peer_label(), bundle->manifest().name);
  const auto section = section_for(*bundle, codes_.chain_of(number));
  counters_.code_bytes_sent += section->size();
  channel_.post_or_disconnect(wire::Kind::code, 0, number, *section);
  return true;
}

// It was sent once, and is neither registered nor kept any more. The peer fails the calls that wait for it.
void CallSender::deny(uint32_t number, const ContentId& id) {
  log_.warn("{} asks for the code {} again, which is not registered here any more: register it again",
            channel_.peer_label(), id.short_hex());
  withdraw(number);
  Bytes none;
  wire::append_code(none, {id, 0, 0}, {});
  channel_.post_or_disconnect(wire::Kind::code, 0, number, none);
}

}  // namespace tc::node
