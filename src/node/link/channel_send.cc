// SPDX-License-Identifier: Apache-2.0
//
// Frames that leave at once, and frames that wait for room.
#include <algorithm>
#include <cstring>

#include "node/link/channel.h"
#include "node/link/pieces.h"

namespace tc::node {

namespace {

// Bounds what one slow peer can cost us: replies, forwarded calls and code that wait for room. One frame of any size is
// taken before the peer is behind.
constexpr size_t backlog_limit = 64u * 1024 * 1024;

size_t total_size(Channel::Parts parts) noexcept {
  size_t size = 0;
  for (const auto part : parts) size += part.size();
  return size;
}

void copy_parts(std::byte* to, Channel::Parts parts) noexcept {
  for (const auto part : parts) {
    if (!part.empty()) std::memcpy(to, part.data(), part.size());
    to += part.size();
  }
}

uint64_t word_of(wire::Kind kind, uint8_t flags, uint32_t number, Channel::Parts parts) noexcept {
  return wire::encode(kind, flags, number, static_cast<uint32_t>(total_size(parts)));
}

}  // namespace

bool Channel::try_post(wire::Kind kind, uint8_t flags, uint32_t number, Parts parts) noexcept {
  std::byte* const at = reserve(total_size(parts));
  if (at == nullptr) return false;
  copy_parts(at + wire::header_bytes, parts);
  out_->commit(word_of(kind, flags, number, parts));
  return true;
}

Status Channel::post(wire::Kind kind, uint8_t flags, uint32_t number, Parts parts) {
  if (try_post(kind, flags, number, parts)) return {};
  if (state_ != State::ready || !is_large(total_size(parts))) return queue(kind, flags, number, parts);
  FrameParts frame(word_of(kind, flags, number, parts), parts);
  return post_while_read(frame.parts());
}

void Channel::post_or_disconnect(wire::Kind kind, uint8_t flags, uint32_t number, ByteView body) {
  if (const auto sent = post(kind, flags, number, {body}); !sent) disconnect(sent.error());
}

Status Channel::post_in_time(wire::Kind kind, uint8_t flags, uint32_t number, Parts parts, Deadline deadline) {
  if (try_post(kind, flags, number, parts)) return {};
  if (!services_.waiter.may_wait() || state_ == State::greeting) return post(kind, flags, number, parts);
  if (state_ == State::ready && is_large(total_size(parts))) {
    FrameParts frame(word_of(kind, flags, number, parts), parts);
    return post_large(frame.parts(), deadline);
  }
  bool sent = false;
  services_.waiter.wait_for_room(
      deadline, [&] { return state_ == State::lost || (sent = try_post(kind, flags, number, parts)); });
  if (sent) return {};
  if (state_ == State::lost) return fail(reason_);
  return fail(no_room(total_size(parts)));
}

Error Channel::no_room(size_t bytes) const {
  return {TC_ERR_BUSY,
          fmt::format("{} has made no room for {} bytes; the message was not accepted", peer_label(), bytes)};
}

Status Channel::charge(Charge& charge, size_t bytes) {
  auto& budget = services_.buffers.budget();
  if (charge.take(budget, bytes)) return {};
  return fail(TC_ERR_LIMIT, "{} bytes of messages wait at {}, {} more are wanted, and {} is the limit (message-memory)",
              budget.used(), services_.self.label, bytes, budget.limit());
}

// ---- The backlog

Status Channel::may_queue(size_t size) const {
  if (state_ == State::lost) return fail(reason_);
  if (backlog_bytes_ > behind_bytes_ && backlog_bytes_ + size > backlog_limit)
    return fail(TC_ERR_LIMIT, "{} bytes wait for {} to make room, and at most {} may", backlog_bytes_, peer_label(),
                backlog_limit);
  return {};
}

void Channel::enqueue(Queued item) {
  const size_t size = item.size();
  backlog_.push_back(std::move(item));
  backlog_bytes_ += size;
  changed();
  services_.work.backlog = true;
}

Status Channel::queue(wire::Kind kind, uint8_t flags, uint32_t number, Parts parts) {
  const auto size = total_size(parts);
  TC_CHECK(may_queue(size));
  Charge counted;
  TC_CHECK(charge(counted, size));
  Bytes frame(wire::header_bytes + size);
  const auto word = word_of(kind, flags, number, parts);
  std::memcpy(frame.data(), &word, sizeof word);
  copy_parts(frame.data() + wire::header_bytes, parts);
  enqueue({.whole = std::move(frame), .rest = {}, .charge = std::move(counted)});
  return {};
}

// False: there is no room for all of it now.
bool Channel::drain(Queued& item) noexcept {
  if (item.rest) {
    const ByteView rest(item.rest.data(), item.rest.size());
    item.sent = write({&rest, 1}, item.sent);
    return item.sent == rest.size();
  }
  const ByteView frame(item.whole);
  if (is_large(frame.size() - wire::header_bytes)) {  // queued before the peer had greeted
    item.sent = write({&frame, 1}, item.sent);
    return item.sent == frame.size();
  }
  const auto body = frame.subspan(wire::header_bytes);
  std::byte* const at = out_->reserve(body.size());
  if (at == nullptr) return false;
  copy_parts(at + wire::header_bytes, {body});
  uint64_t word;
  std::memcpy(&word, frame.data(), sizeof word);
  out_->commit(word);
  drained_bytes_ += frame.size();
  return true;
}

void Channel::drain_backlog() {
  if (state_ != State::ready || streaming_) return;
  while (!backlog_.empty() && drain(backlog_.front())) {
    backlog_bytes_ -= backlog_.front().size();
    backlog_.pop_front();
  }
  changed();
}

void Channel::replace_queued(FunctionRef<std::optional<Bytes>(const Unsent&)> replace) {
  for (auto& queued : backlog_) {
    auto other = replace(unsent_of(queued));
    if (!other) continue;
    backlog_bytes_ -= queued.size();
    queued = Queued{.whole = std::move(*other), .rest = {}, .charge = {}};
    backlog_bytes_ += queued.size();
  }
  changed();
}

Channel::Unsent Channel::unsent_of(const Queued& queued) noexcept {
  const ByteView frame(queued.whole);
  uint64_t word;
  std::memcpy(&word, frame.data(), sizeof word);
  return {wire::decode(word), frame.subspan(wire::header_bytes)};
}

std::optional<Channel::Unsent> Channel::unsent() const noexcept {
  return backlog_.empty() ? std::nullopt : std::optional(unsent_of(backlog_.front()));
}

void Channel::each_unsent(FunctionRef<void(const Unsent&)> show) const {
  for (const auto& queued : backlog_) show(unsent_of(queued));
}

}  // namespace tc::node
