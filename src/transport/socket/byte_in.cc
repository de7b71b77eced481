// SPDX-License-Identifier: Apache-2.0
#include "transport/socket/byte_in.h"

#include <cstring>
#include <new>

namespace tc::transport {

namespace {

// Room for two of the longest frames: one that is read, and one that comes.
constexpr size_t capacity = 2 * (byte_frame_length + wire::header_bytes);
constexpr std::align_val_t alignment{64};
// Behind the last byte a zero word is written.
constexpr size_t slack = 2 * wire::header_bytes;
// Less is not worth a call of the system.
constexpr size_t least_room = 4096;

}  // namespace

void ByteIn::Free::operator()(std::byte* memory) const noexcept { ::operator delete[](memory, alignment); }

void ByteIn::open() {
  memory_.reset(new (alignment) std::byte[capacity + slack]);
  base_ = memory_.get() + wire::header_bytes;
  filled_ = cursor_ = end_ = base_;
  std::memset(filled_, 0, wire::header_bytes);
}

bool ByteIn::has_room() const noexcept { return static_cast<size_t>(filled_ - cursor_) + least_room <= capacity; }

// What could not be read yet, a part of a frame, moves to the front.
void ByteIn::make_room() noexcept {
  if (static_cast<size_t>(base_ + capacity - filled_) >= least_room || cursor_ == base_) return;
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
  if (!fits(header.length)) return false;  // the rest is on its way
  if (header.kind == wire::Kind::pad) advance(header.length);
  return true;
}

void ByteIn::release() noexcept {
  if (cursor_ != filled_ || cursor_ == base_ || base_ == nullptr) return;
  filled_ = cursor_ = end_ = base_;
  std::memset(filled_, 0, wire::header_bytes);
}

}  // namespace tc::transport
