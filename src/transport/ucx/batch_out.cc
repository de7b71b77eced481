// SPDX-License-Identifier: Apache-2.0
#include "transport/ucx/batch_out.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

namespace tc::transport {

namespace {

// So many messages on their way keep any wire busy; while they wait, smaller ones would only use up the buffers.
constexpr size_t congested_messages = 8;
constexpr size_t slack = 32;

}  // namespace

OutBuffer::OutBuffer(size_t size) : memory(new (std::align_val_t{64}) std::byte[size + slack]), bytes(size) {
  std::memset(memory, 0, size + slack);  // the padding between frames travels: it must not tell old secrets
}
OutBuffer::~OutBuffer() { ::operator delete[](memory, std::align_val_t{64}); }

BatchOut::~BatchOut() {
  list_.remove(*this);
  for (auto& buffer : buffers_) {
    if (buffer->operations == 0) continue;
    buffer->owner = nullptr;
    (void)buffer.release();
  }
}

void BatchOut::on_done(OutBuffer& buffer) noexcept {
  if (--buffer.operations != 0) return;
  if (buffer.owner == nullptr) {
    delete &buffer;
    return;
  }
  --buffer.owner->in_flight_;
  buffer.owner->free_.push_back(&buffer);
}

void BatchOut::open(size_t batch_bytes, size_t window_bytes) {
  batch_bytes_ = batch_bytes & ~(wire::alignment - 1);
  window_ = window_bytes & ~(wire::alignment - 1);
  max_buffers_ = window_ / batch_bytes_ + 2;
  free_.reserve(max_buffers_);
  buffers_.reserve(max_buffers_);
  max_length_ = piece_length_ = std::min<size_t>(batch_bytes_, window_ / 2) - wire::alignment;
}

void BatchOut::shut() noexcept {
  if (!is_open()) return;
  list_.remove(*this);
  max_length_ = 0;
  if (buffer_ != nullptr) free_.push_back(std::exchange(buffer_, nullptr));
  cursor_ = end_ = held_end_ = nullptr;
}

void BatchOut::send() noexcept {
  if (!has_unsent()) return;
  const auto filled = static_cast<size_t>(cursor_ - buffer_->base());
  // A lone frame goes without its padding; behind several it is not worth looking for the last one.
  const size_t lone = wire::header_bytes + wire::decode(load_header(buffer_->base())).length;
  OutBuffer& buffer = *std::exchange(buffer_, nullptr);
  cursor_ = end_ = held_end_ = nullptr;
  sent_ += filled;
  ++in_flight_;
  buffer.operations = 1;  // ours, until all are started
  transmit(buffer, filled - lone < wire::alignment ? lone : filled);
  on_done(buffer);
}

void BatchOut::flush() noexcept {
  if (!is_open() || !has_unsent()) return;
  if (in_flight_ >= congested_messages) return list_.add(*this);
  send();
}

bool BatchOut::credit(uint64_t consumed) noexcept {
  if (!is_open()) return true;  // behind a loss it means nothing any more
  if (consumed < credited_ || consumed > sent_) return false;
  credited_ = consumed;
  return true;
}

bool BatchOut::next_buffer() noexcept {
  if (free_.empty()) {
    if (buffers_.size() >= max_buffers_) return false;
    try {
      buffers_.push_back(std::make_unique<OutBuffer>(batch_bytes_));
    } catch (const std::bad_alloc&) {
      return false;  // as if UCX still read them all
    }
    buffers_.back()->owner = this;
    free_.push_back(buffers_.back().get());
  }
  OutBuffer* const next = free_.back();
  free_.pop_back();
  buffer_ = next;
  cursor_ = next->base();
  return true;
}

uint64_t BatchOut::room() const noexcept { return window_ - std::min(window_, position() - credited_); }

// Up to where the window, the buffer and the peer's memory let us write.
void BatchOut::set_end() noexcept {
  const auto left = static_cast<uint64_t>(buffer_->base() + buffer_->bytes - cursor_);
  end_ = cursor_ + std::min({room(), left, static_cast<uint64_t>(contiguous())});
}

// The next frame does not fit where position() is: a pad goes there instead.
bool BatchOut::turn_lap() noexcept {
  send();
  const uint64_t pad = contiguous() + 2 * wire::header_bytes;
  if (pad > room()) return false;
  transmit_pad(pad);
  sent_ += pad;
  return is_open() && next_buffer();
}

std::byte* BatchOut::make_room(size_t length) noexcept {
  if (!is_open() || length > max_length_) return nullptr;
  const size_t need = wire::stride(length);
  if (buffer_ != nullptr && need > static_cast<size_t>(buffer_->base() + buffer_->bytes - cursor_)) send();
  if (!is_open() || (buffer_ == nullptr && !next_buffer())) return nullptr;
  if (need > contiguous() && !turn_lap()) return nullptr;
  set_end();
  if (need <= static_cast<size_t>(end_ - cursor_)) return cursor_;
  send();  // the peer can only give credit for what it gets
  return nullptr;
}

// Frames that follow in this turn are only stored.
void BatchOut::attend() noexcept {
  const auto& pulse = list_.pulse();
  if (!pulse.gathering && sent_in_turn_ != pulse.turn && in_flight_ < congested_messages) {
    sent_in_turn_ = pulse.turn;
    return send();
  }
  list_.add(*this);
  held_end_ = buffer_->base() + buffer_->bytes + slack;
}

}  // namespace tc::transport
