// SPDX-License-Identifier: Apache-2.0
#include "transport/socket/byte_stream.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <new>

namespace tc::transport {

namespace {

constexpr size_t capacity = byte_buffer_capacity;
// Of a buffer to send from: enough for most links, which send little at once.
constexpr size_t first_cleared = 4096 - 2 * wire::header_bytes;

// Returns the new end of what is clear. Padding is sent as well, and must not leak old memory; what is not cleared yet costs
// no pages.
std::byte* clear(std::byte* from, std::byte* to) noexcept {
  if (to <= from) return from;
  std::memset(from, 0, static_cast<size_t>(to - from));
  return to;
}

}  // namespace

// Less room than `least_room` is not worth a system call.
void ByteIn::open(size_t least_room) {
  least_room_ = least_room;
  memory_ = new_byte_buffer();
  base_ = memory_.get() + wire::header_bytes;
  filled_ = cursor_ = end_ = base_;
  std::memset(filled_, 0, wire::header_bytes);
}

bool ByteIn::has_room() const noexcept { return static_cast<size_t>(filled_ - cursor_) + least_room_ <= capacity; }

// Moves what could not be read yet, a part of a frame, to the front: when there is little room behind it, or when there is
// nothing to move, as this reuses the memory that is in the cache.
void ByteIn::make_room() noexcept {
  const bool has_room = static_cast<size_t>(base_ + capacity - filled_) >= least_room_;
  if (cursor_ == base_ || (has_room && cursor_ != filled_)) return;
  const auto left = static_cast<size_t>(filled_ - cursor_);
  std::memmove(base_, cursor_, left);
  cursor_ = base_;
  filled_ = end_ = base_ + left;
  std::memset(filled_, 0, wire::header_bytes);  // what is left may be whole frames, and the channel may bring no more
}

Result<size_t> ByteIn::fill(Channel& channel) {
  make_room();
  const auto room = static_cast<size_t>(base_ + capacity - filled_);
  if (room == 0 || is_shut_) return 0;
  TC_ASSIGN(const size_t got, channel.receive({filled_, room}));
  filled_ += got;
  received_ += got;
  end_ = filled_;
  std::memset(filled_, 0, wire::header_bytes);
  return got;
}

bool ByteIn::refill() noexcept {
  const uint64_t word = peek();
  if (word == 0 || filled_ == nullptr) return false;
  const auto header = wire::decode(word);
  if (header.length > byte_frame_length) {
    broken_ = true;
    return false;
  }
  if (!fits(header.length)) return false;  // the rest has not come yet
  if (header.kind == wire::Kind::pad) advance(header.length);
  return true;
}

void ByteIn::release() noexcept {
  if (cursor_ != filled_ || cursor_ == base_ || base_ == nullptr) return;
  filled_ = cursor_ = end_ = base_;
  std::memset(filled_, 0, wire::header_bytes);
}

void ByteOut::open(Channel& channel) {
  channel_ = &channel;
  memory_ = new_byte_buffer();
  base_ = sent_ = cursor_ = memory_.get() + wire::header_bytes;
  end_ = clear(base_, base_ + first_cleared);
  max_length_ = piece_length_ = byte_frame_length;
}

void ByteOut::shut() noexcept {
  if (!is_open()) return;
  list_.remove(*this);
  max_length_ = 0;
  if (!discards_) unsent_ = {sent_, static_cast<size_t>(cursor_ - sent_)};
  cursor_ = end_ = batch_end_ = nullptr;
}

void ByteOut::discard() noexcept {
  if (!is_open()) return;
  discards_ = true;
  is_full_ = false;
  sent_ = cursor_ = base_;
}

void ByteOut::lose_channel(Error why) noexcept {
  discard();
  owner_.on_channel_lost(std::move(why));
}

void ByteOut::send() noexcept {
  if (discards_) return;
  try {
    while (sent_ != cursor_) {
      const auto took = channel_->send({sent_, static_cast<size_t>(cursor_ - sent_)});
      if (!took) return lose_channel(took.error());
      if (*took == 0) {
        is_full_ = true;
        return owner_.on_channel_full();
      }
      sent_ += *took;
      sent_bytes_ += *took;
    }
  } catch (const std::exception& problem) {
    return lose_channel(Error{TC_ERR_NO_MEMORY, problem.what()});
  }
  sent_ = cursor_ = base_;  // reuses the memory that is in the cache
}

size_t ByteOut::put_gathered(std::span<const GatheredFrame> frames) noexcept {
  if (!is_open()) return 0;
  if (!channel_->can_gather() || discards_) return OutStream::put_gathered(frames);
  if (!is_full_) send();  // what was committed before
  if (!is_open() || is_full_) return 0;
  static constexpr std::byte padding[wire::alignment] = {};
  std::array<ByteView, most_gathered_frames*(most_gathered_parts + 2)> parts;
  size_t count = 0;
  for (const auto& frame : frames) {
    parts[count++] = std::as_bytes(std::span(&frame.header, 1));
    for (const auto part : frame.body) parts[count++] = part;
    parts[count++] = {padding, wire::stride(frame.length()) - wire::header_bytes - frame.length()};
  }
  try {
    const auto took = channel_->send_gathered({parts.data(), count});
    if (took) {
      sent_bytes_ += *took;
      return keep_rest(frames, *took);
    }
    lose_channel(took.error());
  } catch (const std::exception& problem) {
    lose_channel(Error{TC_ERR_NO_MEMORY, problem.what()});
  }
  return 0;
}

// The channel took `taken` bytes. If the last of them are a part of a frame, the rest of that frame must be sent before
// anything else, so the frame counts as taken. It is copied into the buffer as if it had been written there, and sent_
// is set behind the part that has left. Returns how many frames were taken.
size_t ByteOut::keep_rest(std::span<const GatheredFrame> frames, size_t taken) noexcept {
  size_t whole = 0;
  for (; whole < frames.size() && taken >= wire::stride(frames[whole].length()); ++whole)
    taken -= wire::stride(frames[whole].length());
  if (whole == frames.size()) return whole;
  is_full_ = true;
  if (taken != 0) {
    const auto& frame = frames[whole++];
    end_ = clear(end_, base_ + wire::stride(frame.length()));
    std::byte* to = base_;
    const auto add = [&](ByteView part) {
      std::memcpy(to, part.data(), part.size());
      to += part.size();
    };
    add(std::as_bytes(std::span(&frame.header, 1)));
    for (const auto part : frame.body) add(part);
    sent_ = base_ + taken;
    cursor_ = base_ + wire::stride(frame.length());
    std::memset(to, 0, static_cast<size_t>(cursor_ - to));
  }
  owner_.on_channel_full();
  return whole;
}

void ByteOut::flush() noexcept {
  if (!is_open()) return;
  batch_end_ = nullptr;
  if (discards_) return discard();
  if (!is_full_) send();
}

void ByteOut::on_channel_room() noexcept {
  is_full_ = false;
  flush();
}

// Sends the first frame of a poll at once. Frames that follow in this poll are only stored.
void ByteOut::slow_commit() noexcept {
  const auto& poll_state = list_.poll_state();
  if (!discards_ && !poll_state.gathering && sent_in_poll_ != poll_state.poll_number && !is_full_) {
    sent_in_poll_ = poll_state.poll_number;
    return send();
  }
  list_.add(*this);
  batch_end_ = base_ + byte_buffer_bytes;
}

std::byte* ByteOut::make_room(size_t length) noexcept {
  if (!is_open() || length > max_length_) return nullptr;
  const size_t need = wire::stride(length);
  // First, each time twice as much of the buffer as before.
  const auto least = static_cast<size_t>(cursor_ - base_) + need;
  end_ = clear(end_, base_ + std::min(capacity, std::max(least, 2 * static_cast<size_t>(end_ - base_))));
  if (need <= static_cast<size_t>(end_ - cursor_)) return cursor_;
  if (!is_full_) send();
  if (!is_open()) return nullptr;  // the channel was lost
  // Move what is left to the front, by a multiple of 16 bytes, so that frames stay aligned: the channel may have
  // stopped in the middle of a word.
  const auto left = static_cast<size_t>(cursor_ - sent_);
  const auto odd = static_cast<size_t>(sent_ - base_) % wire::alignment;
  if (need > static_cast<size_t>(end_ - cursor_) && sent_ != base_ + odd) {
    std::memmove(base_ + odd, sent_, left);
    sent_ = base_ + odd;
    cursor_ = sent_ + left;
  }
  return need <= static_cast<size_t>(end_ - cursor_) ? cursor_ : nullptr;
}

}  // namespace tc::transport
