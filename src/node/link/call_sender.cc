// SPDX-License-Identifier: Apache-2.0
//
// Calls that leave, and the code that they need at the peer.
#include "node/link/call_sender.h"

#include <spdlog/logger.h>

#include "base/clock.h"
#include "node/call_log.h"
#include "node/code/node_code.h"

namespace tc::node {

CallSender::CallSender(Channel& channel, const LinkServices& services)
    : channel_(channel), code_(services.code), answers_(services.answers), common_(services.channel.common) {}

// Finds the header for a message that another link, or none, sent last. False: not now, or not in one frame. A message
// that is too long for the peer or the stream is never prepared, so sending a prepared message checks no length:
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
  if (!channel_.is_ready() || !waiting_.empty()) return queue(call);
  if (lacks_slices(*call.bundle)) return queue_for_slices(call);
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
  code_.codes.count_sent(code.size());
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
  code_.codes.keep_sent(triple, *call.bundle);
  return codes_.assign(call.bundle->id(), call.index, std::move(chain));
}

std::shared_ptr<const Bytes> CallSender::section_for(const Bundle& bundle, const wire::SharedChain& chain) {
  auto section = code_.codes.section_for(channel_.peer_triple(), bundle);
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
  const auto* const bundle = code_.codes.bundle_for(channel_.peer_triple(), *id);
  if (bundle == nullptr) return deny(number, *id), true;
  common_.log.info("{} asks for the code of ifunc '{}' again", channel_.peer_label(), bundle->manifest().name);
  const auto section = section_for(*bundle, codes_.chain_of(number));
  code_.codes.count_sent(section->size());
  channel_.post_or_disconnect(wire::Kind::code, 0, number, *section);
  return true;
}

// It was sent once, and is neither registered nor kept any more. The peer fails the calls that wait for it.
void CallSender::deny(uint32_t number, const ContentId& id) {
  common_.call_log.warn(
      channel_, fmt::format("{} asks for the code {} again, which is not registered here any more: register it again",
                            channel_.peer_label(), id.short_hex()));
  withdraw(number);
  Bytes none;
  wire::append_code(none, {id, 0, 0}, {});
  channel_.post_or_disconnect(wire::Kind::code, 0, number, none);
}

// ---- Calls that wait for the greeting, or for slices

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

Status CallSender::queue(const OutgoingCall& call) {
  const auto size = call.payload.size();
  if (waiting_.size() >= calls_limit)
    return fail(TC_ERR_LIMIT, "{} calls wait for {} to answer, and at most {} may", waiting_.size(),
                channel_.peer_label(), calls_limit);
  if (!waiting_.empty() && waiting_bytes_ + size > bytes_limit)
    return fail(TC_ERR_LIMIT, "{} bytes wait for {} to answer, and at most {} may", waiting_bytes_,
                channel_.peer_label(), bytes_limit);
  Waiting waiting{*call.bundle, call.index, {}, {}, {}, call.shared_chain(), now_ns(), {}};
  TC_CHECK(channel_.charge(waiting.charge, size));
  waiting.payload.assign(call.payload.begin(), call.payload.end());
  if (call.header != nullptr) waiting.header = *call.header;
  if (call.return_address != nullptr) waiting.return_address = *call.return_address;
  waiting_.push_back(std::move(waiting));
  waiting_bytes_ += size;
  channel_.set_calls_wait(true);
  return {};
}

// The ifunc was built for the peer's CPU, but that part of it is not here.
bool CallSender::lacks_slices(const Bundle& bundle) const noexcept {
  const auto& triple = channel_.peer_triple();
  return bundle.useful_for(triple) == 0 && bundle.lists(triple) &&
         codes_.number_of(bundle.id()) == source::CodeTable::none &&
         code_.codes.runnable_on(triple, bundle.id()) == nullptr;
}

Status CallSender::ask_for_slices(const Bundle& bundle) {
  return code_.slices.ask(bundle, channel_.peer_triple(), {channel_.id(), {}});
}

// For a call that lacks slices. Those behind it wait too, so that no call overtakes another.
Status CallSender::queue_for_slices(const OutgoingCall& call) {
  TC_CHECK(ask_for_slices(*call.bundle));
  TC_CHECK(queue(call));
  waiting_.back().asked = true;
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
  while (!waiting_.empty() && channel_.is_ready() && may_leave(waiting_.front())) {
    const auto& call = waiting_.front();  // it stays until it has left, or its failure is recorded
    if (const auto sent = send_late(call); !sent) {
      if (call.header)
        fail_call(call, sent.error());
      else
        record_failure(sent.error());
      answers_.count_failure(sent.error(), nullptr);
    }
    waiting_bytes_ -= call.payload.size();
    waiting_.pop_front();
  }
  channel_.set_calls_wait(!waiting_.empty());
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
  for (auto& call : waiting_)
    if (error && call.asked && call.bundle.id() == id) call.refused = *error;
  send_waiting();
}

bool CallSender::cancel(uint64_t token) {
  const auto found = std::ranges::find_if(waiting_, [&](const Waiting& call) {
    return call.header && call.header->token == token && call.caller() == nullptr;
  });
  if (found == waiting_.end()) return false;
  found->refused = Error{TC_ERR_CANCELED, "its caller canceled it"};
  send_waiting();
  return true;
}

void CallSender::each_waiting(ShowCall show) const {
  for (const auto& call : waiting_)
    if (call.header && call.header->token != 0)
      show(call.return_address ? call.caller()->instance : answers_.own_instance(), call.header->token);
}

void CallSender::fail_waiting(const Error& reason) {
  for (; !waiting_.empty(); waiting_.pop_front())
    if (const auto& call = waiting_.front(); call.header) fail_call(call, reason);
}

void CallSender::fail_call(const Waiting& call, const Error& reason) {
  const auto* const caller = call.caller();
  answers_.fail_later(call.header->token, caller, reason);
  if (caller != nullptr) answers_.forget_forwarded(call.header->token, *caller);
}

}  // namespace tc::node
