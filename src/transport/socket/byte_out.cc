// SPDX-License-Identifier: Apache-2.0
#include "transport/socket/byte_out.h"

#include <array>
#include <cstring>
#include <new>

#include "transport/socket/byte_in.h"

namespace tc::transport {

namespace {

// Room for two of the longest frames.
constexpr size_t capacity = 2 * (byte_frame_length + wire::header_bytes);
constexpr std::align_val_t alignment{64};
// Behind the last frame a zero word may be written.
constexpr size_t slack = 2 * wire::header_bytes;

}  // namespace

void ByteOut::Free::operator()(std::byte* memory) const noexcept { ::operator delete[](memory, alignment); }

void ByteOut::open(Channel& channel) {
  channel_ = &channel;
  memory_.reset(new (alignment) std::byte[capacity + slack]);
  std::memset(memory_.get(), 0, capacity + slack);  // the padding between frames travels: it must not tell old secrets
  base_ = sent_ = cursor_ = memory_.get() + wire::header_bytes;
  end_ = base_ + capacity;
  max_length_ = piece_length_ = byte_frame_length;
}

void ByteOut::shut() noexcept {
  if (!is_open()) return;
  list_.remove(*this);
  max_length_ = 0;
  unsent_ = {sent_, static_cast<size_t>(cursor_ - sent_)};
  cursor_ = end_ = held_end_ = nullptr;
}

void ByteOut::send() noexcept {
  try {
    while (sent_ != cursor_) {
      const auto took = channel_->send({sent_, static_cast<size_t>(cursor_ - sent_)});
      if (!took) return owner_.on_channel_lost(took.error());
      if (*took == 0) {
        is_full_ = true;
        return owner_.on_channel_full();
      }
      sent_ += *took;
    }
  } catch (const std::exception& problem) {
    return owner_.on_channel_lost(Error{TC_ERR_NO_MEMORY, problem.what()});
  }
  sent_ = cursor_ = base_;  // where it is warm
}

size_t ByteOut::put_gathered(std::span<const GatheredFrame> frames) noexcept {
  if (!is_open()) return 0;
  if (!channel_->can_gather()) return OutStream::put_gathered(frames);
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
    if (took) return keep_rest(frames, *took);
    owner_.on_channel_lost(took.error());
  } catch (const std::exception& problem) {
    owner_.on_channel_lost(Error{TC_ERR_NO_MEMORY, problem.what()});
  }
  return 0;
}

// The channel took so many bytes. What is left of a frame that it took in part goes into the buffer, where it would lie
// had the frame been written there. How many frames that makes.
size_t ByteOut::keep_rest(std::span<const GatheredFrame> frames, size_t taken) noexcept {
  size_t whole = 0;
  for (; whole < frames.size() && taken >= wire::stride(frames[whole].length()); ++whole)
    taken -= wire::stride(frames[whole].length());
  if (whole == frames.size()) return whole;
  is_full_ = true;
  if (taken != 0) {
    const auto& frame = frames[whole++];
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
  held_end_ = nullptr;
  if (!is_full_) send();
}

void ByteOut::on_channel_room() noexcept {
  is_full_ = false;
  flush();
}

// Frames that follow in this turn are only stored.
void ByteOut::attend() noexcept {
  const auto& pulse = list_.pulse();
  if (!pulse.gathering && sent_in_turn_ != pulse.turn && !is_full_) {
    sent_in_turn_ = pulse.turn;
    return send();
  }
  list_.add(*this);
  held_end_ = base_ + capacity + slack;
}

std::byte* ByteOut::make_room(size_t length) noexcept {
  if (!is_open() || length > max_length_) return nullptr;
  const size_t need = wire::stride(length);
  if (!is_full_) send();
  if (!is_open()) return nullptr;  // the channel was lost
  // The channel may have taken a part of a word. What is left moves by whole strides, so that frames stay aligned.
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
