// SPDX-License-Identifier: Apache-2.0
#include "transport/socket/byte_in.h"

#include <cstring>

namespace tc::transport {

namespace {

constexpr size_t capacity = byte_buffer_capacity;

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

// Moves what could not be read yet, a part of a frame, to the front.
void ByteIn::make_room() noexcept {
  if (static_cast<size_t>(base_ + capacity - filled_) >= least_room_ || cursor_ == base_) return;
  const auto left = static_cast<size_t>(filled_ - cursor_);
  std::memmove(base_, cursor_, left);
  cursor_ = base_;
  filled_ = end_ = base_ + left;
}

Result<size_t> ByteIn::fill(Channel& channel) {
  make_room();
  const auto room = static_cast<size_t>(base_ + capacity - filled_);
  if (room == 0 || is_shut_) return 0;
  TC_ASSIGN(const size_t got, channel.receive({filled_, room}));
  filled_ += got;
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

}  // namespace tc::transport
