// SPDX-License-Identifier: Apache-2.0
#include "cell/channel.h"

#include <linux/membarrier.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "cell/protocol.h"

namespace tc::cell {

using transport::RingMemory;

Channel::Channel(RingMemory memory, RingMemory::Side side, int socket, size_t message_bytes)
    : socket_(socket),
      message_bytes_(message_bytes),
      memory_(std::move(memory)),
      out_(flush_list_, [this] { wake(); }) {
  const bool creates = side == RingMemory::Side::creator;
  in_.open(memory_.written_by(creates ? RingMemory::Side::receiver : RingMemory::Side::creator));
  out_.open(memory_.written_by(side));
  memory_.close_descriptor();
}

// A socket that is full is as good: the other side has bells to read.
void Channel::wake() noexcept {
  const auto bell = static_cast<uint8_t>(Packet::bell);
  (void)!::send(socket_, &bell, sizeof bell, MSG_NOSIGNAL | MSG_DONTWAIT);
}

bool Channel::can_sleep() noexcept {
  return ::syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0, 0) == 0;
}

void Channel::barrier() noexcept { (void)::syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0); }

// ---- Sending

bool Channel::put(uint8_t kind, uint32_t number, ByteView head, ByteView tail) noexcept {
  const size_t length = head.size() + tail.size();
  std::byte* const at = out_.reserve(length);
  if (at == nullptr) return false;
  std::byte* const body = at + wire::header_bytes;
  if (!head.empty()) std::memcpy(body, head.data(), head.size());
  if (!tail.empty()) std::memcpy(body + head.size(), tail.data(), tail.size());
  out_.commit(wire::encode(static_cast<wire::Kind>(kind), 0, number, static_cast<uint32_t>(length)));
  return true;
}

void Channel::send(uint8_t kind, uint32_t number, ByteView head, ByteView tail) {
  const size_t length = head.size() + tail.size();
  const bool goes_now = waiting_.empty() && length <= out_.max_length() && put(kind, number, head, tail);
  if (!goes_now) {
    Bytes body;
    body.reserve(length);
    body.insert(body.end(), head.begin(), head.end());
    body.insert(body.end(), tail.begin(), tail.end());
    waiting_.push_back({kind, number, std::move(body)});
  }
  (void)progress();
}

bool Channel::put_some(Waiting& waiting) noexcept {
  const ByteView body = waiting.body;
  for (;;) {
    const size_t left = body.size() - waiting.sent;
    const size_t now = std::min(left, out_.piece_length());
    if (!put(now == left ? waiting.kind : kind_part, waiting.number, body.subspan(waiting.sent, now), {})) return false;
    waiting.sent += now;
    if (now == left) return true;
  }
}

bool Channel::progress() {
  const auto before = out_.written();
  while (!waiting_.empty() && put_some(waiting_.front())) waiting_.pop_front();
  out_.flush();
  ++poll_state_.poll_number;
  return out_.written() != before;
}

// ---- Receiving

// The header of a frame that has come whole. A peer may write pads that lead to each other for ever, so few are followed.
std::optional<uint64_t> Channel::next_header() noexcept {
  constexpr int most_pads = 2;
  for (int pads = 0; pads <= most_pads; ++pads) {
    const uint64_t word = in_.peek();
    if (word == 0) break;
    const auto header = wire::decode(word);
    if (header.kind != wire::Kind::pad && in_.fits(header.length)) return word;
    if (!in_.refill()) break;
  }
  if (in_.broken()) broken_ = Error{TC_ERR_MALFORMED, "a frame reaches past the end of the ring"};
  in_.release();
  return {};
}

// All parts are as long as a sender makes them. With shorter ones a peer could go on for ever in one message: with
// empty ones, it need not even write, as the ring leads back to them.
bool Channel::takes(const wire::FrameHeader& header) {
  if (static_cast<uint8_t>(header.kind) != kind_part || header.length == out_.piece_length()) return true;
  broken_ = Error{TC_ERR_MALFORMED,
                  fmt::format("a part of a message has {} bytes when each has {}", header.length, out_.piece_length())};
  return false;
}

bool Channel::join(size_t length) {
  if (length > message_bytes_ || body_.size() > message_bytes_ - length) {
    broken_ = Error{TC_ERR_TOO_LARGE, fmt::format("a message has more than {} bytes, with the {} that came before it",
                                                  message_bytes_, body_.size())};
    return false;
  }
  const auto* const body = in_.body();
  body_.insert(body_.end(), body, body + length);
  in_.advance(length);
  return true;
}

std::optional<Channel::Message> Channel::receive() {
  if (broken_) return {};
  if (is_complete_) {
    constexpr size_t most_kept = size_t{1} << 20;  // after a long message, its memory goes back
    if (body_.capacity() > most_kept) Bytes().swap(body_);
    body_.clear();
    is_complete_ = false;
  }
  while (const auto word = next_header()) {
    const auto header = wire::decode(*word);
    if (!takes(header) || !join(header.length)) return {};
    if (static_cast<uint8_t>(header.kind) == kind_part) {
      in_.release();
      continue;
    }
    is_complete_ = true;
    return Message{static_cast<uint8_t>(header.kind), header.number, body_};
  }
  return {};
}

}  // namespace tc::cell
