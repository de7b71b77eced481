// SPDX-License-Identifier: Apache-2.0
#include "transport/batch_out.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

namespace tc::transport {

namespace {

// So many batches on their way keep any wire busy; while they wait, smaller ones would only use up the buffers.
constexpr size_t congested_batches = 8;

}  // namespace

[[gnu::hot]] unsigned FlushList::flush_all() noexcept {
  unsigned done = 0;
  size_t kept = 0;
  for (BatchOut* const stream : streams_) {
    done += stream->has_unsent() ? 1u : 0u;
    if (stream->flush_unless_congested())
      stream->rearm();
    else
      streams_[kept++] = stream;
  }
  streams_.resize(kept);
  return done;
}

OutBuffer::OutBuffer(size_t size)
    : memory(new (std::align_val_t{64}) std::byte[size + more_bytes]), bytes(size), is_borrowed(false) {
  std::memset(memory, 0, size + more_bytes);  // the padding between frames travels: it must not tell old secrets
}
OutBuffer::OutBuffer(std::byte* borrowed, size_t size) noexcept : memory(borrowed), bytes(size), is_borrowed(true) {}
OutBuffer::~OutBuffer() {
  if (!is_borrowed) ::operator delete[](memory, std::align_val_t{64});
}

BatchOut::BatchOut(FlushList& list, Bypass& bypass) : bypass_(bypass), list_(&list) { attention_ = &attention_word_; }

BatchOut::~BatchOut() {
  if (list_ != nullptr) list_->remove(*this);
  for (auto& buffer : buffers_) {
    if (buffer.get() != buffer_ && std::ranges::find(free_, buffer.get()) == free_.end()) {
      buffer->owner = nullptr;  // the wire still reads it: whoever completes the send deletes it
      (void)buffer.release();
    }
  }
}

void BatchOut::open(size_t batch_bytes, size_t window_bytes) {
  batch_bytes_ = batch_bytes & ~(wire::alignment - 1);
  window_ = window_bytes & ~(wire::alignment - 1);
  max_length_ = std::min<size_t>(batch_bytes_, window_ / 2) - wire::alignment;
  max_buffers_ = window_ / batch_bytes_ + 2;
  free_.reserve(max_buffers_);
  buffers_.reserve(max_buffers_);
  open_ = true;
  in_messages_ = contiguous() == SIZE_MAX;
  rearm();
}

void BatchOut::shut() noexcept {
  open_ = false;
  bypass_.room = 0;
  attention_word_ = 0;
  if (buffer_ != nullptr) {
    free_.push_back(buffer_);
    buffer_ = nullptr;
  }
  cursor_ = end_ = nullptr;
}

[[gnu::hot]] void BatchOut::flush() noexcept {
  if (!has_unsent()) return;
  const auto filled = static_cast<size_t>(cursor_ - buffer_->base());
  // A lone frame goes without its padding; behind several it is not worth looking for the last one.
  const size_t lone = wire::header_bytes + wire::decode(load_header(buffer_->base())).length;
  const size_t size = filled - lone < wire::alignment ? lone : filled;
  bypass_.sent += filled;
  OutBuffer* const buffer = std::exchange(buffer_, nullptr);
  cursor_ = end_ = nullptr;
  const bool free_again = transmit(*buffer, buffer->base(), size);
  if (free_again && open_) [[likely]]
    return fill(*buffer);
  if (free_again)
    free_.push_back(buffer);
  else
    ++in_flight_;
  if (open_) (void)next_buffer();
}

[[gnu::hot]] bool BatchOut::flush_unless_congested() noexcept {
  if (has_unsent() && in_flight() >= congested_batches) return false;
  flush();
  return true;
}

bool BatchOut::credit(uint64_t consumed) noexcept {
  if (!open_) return true;  // behind a loss or goodbye it means nothing any more
  if (consumed < credited_ || consumed > bypass_.sent) return false;
  credited_ = consumed;
  return true;
}

void BatchOut::give_back(OutBuffer& buffer) noexcept {
  --in_flight_;
  if (buffer.is_borrowed)
    buffer.owner = nullptr;
  else
    free_.push_back(&buffer);
}

bool BatchOut::next_buffer() noexcept {
  if (free_.empty()) {
    if (buffers_.size() >= max_buffers_) return false;
    buffers_.push_back(std::make_unique<OutBuffer>(batch_bytes_));
    buffers_.back()->owner = this;
    free_.push_back(buffers_.back().get());
  }
  OutBuffer* const next = free_.back();
  free_.pop_back();
  fill(*next);
  return true;
}

[[gnu::hot]] void BatchOut::fill(OutBuffer& buffer) noexcept {
  buffer_ = &buffer;
  cursor_ = buffer.base();
  set_end();
}

// Up to where the window, the buffer and the peer's memory let us write.
void BatchOut::set_end() noexcept {
  const auto left = static_cast<uint64_t>(buffer_->base() + buffer_->bytes - cursor_);
  bypass_.room = 0;
  end_ = cursor_ + std::min({room(), left, static_cast<uint64_t>(contiguous())});
}

// The next frame does not fit where position() is: a pad goes there instead.
bool BatchOut::turn_lap() noexcept {
  flush();
  const uint64_t pad = contiguous() + 2 * wire::header_bytes;
  if (buffer_ == nullptr || pad > room()) return false;
  transmit_pad(pad);
  bypass_.sent += pad;
  return open_;
}

std::byte* BatchOut::make_room(size_t length) noexcept {
  if (!open_ || length > max_length_) return nullptr;
  const size_t need = wire::stride(length);
  if (buffer_ != nullptr && need > static_cast<size_t>(buffer_->base() + buffer_->bytes - cursor_)) flush();
  if (buffer_ == nullptr && !next_buffer()) return nullptr;
  if (need > contiguous() && !turn_lap()) return nullptr;
  set_end();
  if (need <= static_cast<size_t>(end_ - cursor_)) return cursor_;
  flush();  // the peer can only give credit for what it gets
  return nullptr;
}

[[gnu::hot]] void BatchOut::attend() noexcept {
  attention_word_ = 0;
  list_->add(*this);
  if (bypass_.is_fresh(list_->pulse())) (void)flush_unless_congested();
}

// The stream stays as it is, but that it grants nothing until make_room() measures its room anew: all of it is for frames
// that go past it.
[[gnu::hot]] bool BatchOut::put_alone(uint64_t header, std::initializer_list<ByteView> body) noexcept {
  const size_t length = header >> 32;
  if (reserve(length) == nullptr) [[unlikely]]
    return false;
  // Where attention is wanted, nothing waits to be sent.
  const bool is_clear = in_messages_ && attention_word_ != 0 && in_flight_ < congested_batches;
  if (!is_clear) return OutStream::put_alone(header, body);
  bypass_.room = static_cast<uint64_t>(end_ - cursor_);
  OutBuffer* const lone = bypass_.lay_out(*list_, header, body);
  if (lone == nullptr) {
    bypass_.room = 0;
    return OutStream::put_alone(header, body);
  }
  end_ = cursor_;
  if (!transmit(*lone, lone->base(), wire::header_bytes + length)) keep_lone(*lone);
  return true;
}

}  // namespace tc::transport
