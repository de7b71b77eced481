// SPDX-License-Identifier: Apache-2.0
//
// The sending half of a link.
#include "node/link/link.h"

#include <algorithm>

#include "node/node.h"

namespace tc::node {

namespace {

// Bounds what one slow peer can cost us: replies, forwarded calls and code that wait for room.
constexpr size_t backlog_limit = 64u * 1024 * 1024;
// What a frame holds besides a payload or bundle of the largest size.
constexpr size_t frame_overhead = 4096;

size_t total_size(std::initializer_list<ByteView> parts) noexcept {
  size_t size = 0;
  for (const auto part : parts) size += part.size();
  return size;
}

void copy_parts(std::byte* to, std::initializer_list<ByteView> parts) noexcept {
  for (const auto part : parts) {
    if (!part.empty()) std::memcpy(to, part.data(), part.size());
    to += part.size();
  }
}

uint64_t header_for(wire::Kind kind, uint8_t flags, uint32_t number, std::initializer_list<ByteView> parts) noexcept {
  return wire::encode(kind, flags, number, static_cast<uint32_t>(total_size(parts)));
}

}  // namespace

Link::Link(Node& node, std::unique_ptr<transport::Connection> connection, bool initiator)
    : node_(node),
      initiator_(initiator),
      in_(&connection->in()),
      out_(&connection->out()),
      mark_(node.next_link_mark()),
      prepared_mark_(mark_),
      connection_(std::move(connection)),
      assembly_(node.buffers(), node.config().max_message + frame_overhead) {
  connection_->own(this);
}

Link::~Link() = default;

std::string Link::peer_label() const {
  if (peer_.protocol == 0) return fmt::format("the peer at {}", connection_->peer_address());
  if (peer_.node_id == Node::no_id) return fmt::format("client {}", peer_.name);
  return fmt::format("node {} ({})", peer_.node_id, peer_.name);
}

const std::shared_ptr<const std::string>& Link::shared_label() {
  if (label_ == nullptr || state_ == State::greeting) label_ = std::make_shared<const std::string>(peer_label());
  return label_;
}

bool Link::leads_to(std::string_view address) const noexcept {
  if (initiator_ && connection_->peer_address() == address) return true;
  if (state_ != State::ready || peer_.address != address) return false;
  const auto& origin = connection_->origin();
  return initiator_ || origin.same_user || address.substr(0, address.rfind(':')) == origin.host;
}

std::string Link::peer_host() const { return connection_->origin().host; }

bool Link::prepare(source::Message& message) const noexcept {
  const auto number = codes_.number_of(message.index());
  if (!open_ || number == source::CodeTable::none) return false;
  message.prepared_for = prepared_mark_;
  message.prepared_header = wire::encode(wire::Kind::call, 0, number, static_cast<uint32_t>(message.size()));
  return true;
}

size_t Link::try_send(source::Message* const* messages, size_t count) noexcept {
  transport::OutStream::Burst burst(*out_);
  size_t sent = 0;
  for (; sent < count; ++sent) {
    auto& message = *messages[sent];
    if (message.prepared_for != open_mark_ && !prepare(message)) break;
    if (!burst.add(message.prepared_header, message.payload())) break;
  }
  burst.publish();
  return sent;
}

bool Link::try_post(wire::Kind kind, uint8_t flags, uint32_t number, Parts parts) noexcept {
  const auto size = total_size(parts);
  std::byte* const at =
      size <= most_at_once_ ? out_->reserve(size) : nullptr;  // 0 unless frames may be written at once
  if (at == nullptr) return false;
  copy_parts(at + wire::header_bytes, parts);
  out_->commit(header_for(kind, flags, number, parts));
  return true;
}

Status Link::may_queue(size_t size) {
  if (state_ == State::lost) return fail(reason_);
  if (!backlog_.empty() && backlog_bytes_ + size > backlog_limit)
    return fail(TC_ERR_LIMIT, "{} bytes wait for {} to make room, and at most {} may", backlog_bytes_, peer_label(),
                backlog_limit);
  return {};
}

void Link::enqueue(Queued item) {
  backlog_bytes_ += item.size();
  backlog_.push_back(std::move(item));
  update_open();
  node_.note_backlog();
}

Status Link::queue(wire::Kind kind, uint8_t flags, uint32_t number, Parts parts) {
  const auto size = total_size(parts);
  TC_CHECK(may_queue(size));
  Charge charge;
  if (!charge.take(node_.buffers().budget(), size)) return fail(TC_ERR_LIMIT, "{}", node_.no_memory_for_messages(size));
  Bytes frame(wire::header_bytes + size);
  const auto word = header_for(kind, flags, number, parts);
  std::memcpy(frame.data(), &word, sizeof word);
  copy_parts(frame.data() + wire::header_bytes, parts);
  enqueue({.whole = std::move(frame), .rest = {}, .charge = std::move(charge)});
  return {};
}

Status Link::post_when_possible(wire::Kind kind, uint8_t flags, uint32_t number, Parts parts, Deadline deadline) {
  if (try_post(kind, flags, number, parts)) return {};
  // Whoever is called from the node's own polling cannot wait for it.
  const bool may_wait = !node_.polling() && state_ != State::greeting;
  if (state_ == State::ready && is_large(total_size(parts))) {
    FrameParts frame(header_for(kind, flags, number, parts), parts);
    return may_wait ? post_large(frame.parts(), deadline) : post_while_read(frame.parts());
  }
  if (!may_wait) return queue(kind, flags, number, parts);
  bool sent = false;
  node_.poll_for(deadline, [&] {
    if (state_ == State::lost) return true;
    return sent = try_post(kind, flags, number, parts);
  });
  if (sent) return {};
  if (state_ == State::lost) return fail(reason_);
  return fail(TC_ERR_BUSY, "{} has made no room for {} bytes; the message was not accepted", peer_label(),
              total_size(parts));
}

Status Link::post(wire::Kind kind, uint32_t number, ByteView body, uint8_t flags) {
  return post_at_once(kind, flags, number, {body});
}

// From anywhere, without waiting.
Status Link::post_at_once(wire::Kind kind, uint8_t flags, uint32_t number, Parts parts) {
  if (try_post(kind, flags, number, parts)) return {};
  if (state_ != State::ready || !is_large(total_size(parts))) return queue(kind, flags, number, parts);
  FrameParts frame(header_for(kind, flags, number, parts), parts);
  return post_while_read(frame.parts());
}

void Link::post_reply(const wire::Reply& reply) {
  if (state_ == State::ready && reply.bytes.size() > peer_.max_message) {
    auto instead = reply;
    instead.bytes = {};
    instead.status = TC_ERR_TOO_LARGE;
    instead.message = fmt::format("{}: the answer is {} bytes when {} takes at most {}", node_.label(),
                                  reply.bytes.size(), peer_label(), peer_.max_message);
    return post_reply(instead);
  }
  const bool report_only = reply.token == 0;
  if (report_only && !backlog_.empty()) {
    ++untold_failures_;  // the peer is behind with reading: count, and tell the sum later
    return;
  }
  if (const auto sent = post_at_once(wire::Kind::reply, 0, 0, {wire::encode_reply_head(reply), reply.bytes});
      !sent && state_ != State::lost)
    hang_up(sent.error());
}

void Link::post_notice(uint32_t what, ByteView body) {
  if (const auto sent = post(wire::Kind::notice, what, body); !sent && state_ != State::lost) hang_up(sent.error());
}

// False: there is no room for all of it now.
bool Link::drain(Queued& item) noexcept {
  if (item.rest) {
    const ByteView rest(item.rest.data(), item.rest.size());
    item.sent = write_pieces(*out_, {&rest, 1}, item.sent);
    return item.sent == rest.size();
  }
  const ByteView frame(item.whole);
  if (is_large(frame.size() - wire::header_bytes)) {  // queued before the peer had greeted
    item.sent = write_pieces(*out_, {&frame, 1}, item.sent);
    return item.sent == frame.size();
  }
  const auto body = frame.subspan(wire::header_bytes);
  std::byte* const at = out_->reserve(body.size());
  if (at == nullptr) return false;
  copy_parts(at + wire::header_bytes, {body});
  uint64_t word;
  std::memcpy(&word, frame.data(), sizeof word);
  out_->commit(word);
  return true;
}

bool Link::drain_backlog() {
  if (state_ != State::ready || streaming_) return false;
  bool moved = false;
  while (!backlog_.empty() && drain(backlog_.front())) {
    backlog_bytes_ -= backlog_.front().size();
    backlog_.pop_front();
    moved = true;
  }
  if (state_ != State::ready) return moved;  // the peer was lost by it
  update_open();
  if (backlog_.empty() && untold_failures_ != 0) {
    wire::Reply report;
    report.status = TC_ERR_IFUNC;
    report.node_id = node_.wire_id();
    report.message = fmt::format("{}: {} more calls failed", node_.label(), std::exchange(untold_failures_, 0));
    post_reply(report);
  }
  return moved;
}

Result<uint32_t> Link::number_for(const Outgoing& call, bool& is_new) {
  is_new = false;
  if (const auto number = codes_.number_of(call.bundle->id()); number != source::CodeTable::none) {
    codes_.alias(call.index, number);
    return number;
  }
  // A lack that the source can see is told at once; the target checks again.
  if (state_ == State::ready && !call.bundle->lists(peer_triple_))
    return fail(TC_ERR_NO_SLICE, "ifunc '{}' holds no code for {}, which is {}; build it with --target {}",
                call.bundle->manifest().name, peer_label(), peer_triple_.text, peer_triple_.text);
  is_new = true;
  const Bundle* const other =
      call.bundle->useful_for(peer_triple_) == 0 ? node_.slices().at_hand(call.bundle->id(), peer_triple_) : nullptr;
  node_.sent_code().keep(other != nullptr ? *other : *call.bundle);
  return codes_.assign(call.bundle->id(), call.index);
}

// Messages that were prepared with the number are prepared anew.
void Link::withdraw(uint32_t number) {
  codes_.withdraw(number);
  prepared_mark_ = node_.next_link_mark();
  if (passed_number_ == number) passed_number_ = source::CodeTable::none;
  update_open();
}

Status Link::send_call(const Outgoing& call, Deadline deadline) {
  if (call.ticket != nullptr && !call.with_code && try_pass_on(call)) return {};
  if (state_ == State::lost) return fail(reason_);
  // Which slices are of use is known only after the greeting; until then nothing is numbered.
  if (state_ == State::greeting || !held_.empty()) return hold(call);
  if (lacks_slices(*call.bundle)) return hold_for_slices(call);
  return send_now(call, deadline);
}

Status Link::send_now(const Outgoing& call, Deadline deadline) {
  bool is_new = false;
  TC_ASSIGN(const auto number, number_for(call, is_new));
  const bool with_code = is_new || call.with_code;
  const auto ticket_part = call.ticket != nullptr ? wire::bytes_of(*call.ticket) : ByteView{};
  const auto route = call.route != nullptr ? call.route->bytes() : ByteView{};
  const auto section = with_code ? node_.code_section(*call.bundle, peer_triple_) : nullptr;
  const ByteView code_part = section != nullptr ? ByteView(*section) : ByteView{};
  const auto code_bytes = code_part.size();
  const auto size = ticket_part.size() + route.size() + code_bytes + call.payload.size();
  if (size > peer_.max_message) {
    if (is_new) withdraw(number);
    return fail(TC_ERR_TOO_LARGE, "ifunc '{}' with its payload is {} bytes when {} takes at most {}",
                call.bundle->manifest().name, size, peer_label(), peer_.max_message);
  }
  const auto flags = static_cast<uint8_t>((call.ticket != nullptr ? wire::flag_token : 0) |
                                          (call.route != nullptr ? wire::flag_route : 0));
  auto sent = post_when_possible(with_code ? wire::Kind::call_code : wire::Kind::call, flags, number,
                                 {ticket_part, route, code_part, call.payload}, deadline);
  if (sent && !with_code) {
    passed_on_ = call.bundle->id();
    passed_code_ = call.code;
    passed_number_ = number;
  }
  if (sent) node_.count_code_sent(code_bytes);
  if (!sent && is_new && state_ != State::lost) withdraw(number);
  return sent;
}

bool Link::try_pass_on(const Outgoing& call) noexcept {
  if (passed_number_ == source::CodeTable::none) return false;
  if (call.code != nullptr ? call.code != passed_code_ : call.bundle->id() != passed_on_) return false;
  const auto flags = static_cast<uint8_t>(wire::flag_token | (call.route != nullptr ? wire::flag_route : 0));
  const auto route = call.route != nullptr ? call.route->bytes() : ByteView{};
  const size_t size = wire::ticket_bytes + route.size() + call.payload.size();
  std::byte* const at = size <= most_at_once_ ? out_->reserve(size) : nullptr;
  if (at == nullptr) return false;
  std::byte* const body = at + wire::header_bytes;
  wire::write_ticket(body, *call.ticket);
  copy_parts(body + wire::ticket_bytes, {route, call.payload});
  out_->commit(wire::encode(wire::Kind::call, flags, passed_number_, static_cast<uint32_t>(size)));
  return true;
}

void Link::update_open() noexcept {
  open_ = state_ == State::ready && backlog_.empty() && held_.empty() && !streaming_;
  open_mark_ = open_ ? prepared_mark_ : closed_mark;
  const uint64_t most = open_ ? std::min<uint64_t>(peer_.max_message, out_->max_length()) : 0;
  most_at_once_ = static_cast<uint32_t>(std::min<uint64_t>(most, UINT32_MAX));
}

Status Link::flush(Deadline deadline) {
  if (!node_.poll_until(deadline, [&] { return held_.empty() || state_ == State::lost; }))
    return fail(TC_ERR_TIMEOUT, "{} calls for {} still wait for their code", held_.size(), peer_label());
  if (state_ == State::lost) return fail(reason_);
  const auto barrier = ++barriers_sent_;
  TC_CHECK(post_when_possible(wire::Kind::barrier, 0, wire::barrier_ask, {wire::encode_barrier(barrier)}, deadline));
  const bool in_time = node_.poll_until(deadline, [&] { return barriers_passed_ >= barrier || state_ == State::lost; });
  auto failure = std::exchange(first_failure_, std::nullopt);
  if (failure && more_failures_ != 0) failure->message += fmt::format(" (and {} more calls failed)", more_failures_);
  more_failures_ = 0;
  if (failure) return fail(std::move(*failure));
  if (barriers_passed_ >= barrier) return {};
  if (state_ == State::lost) return fail(reason_);
  if (!in_time) return fail(TC_ERR_TIMEOUT, "{} has not run everything within the deadline", peer_label());
  return fail(TC_ERR_INTERNAL, "flush of {} ended without a cause", peer_label());
}

}  // namespace tc::node
