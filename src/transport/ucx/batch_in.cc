// SPDX-License-Identifier: Apache-2.0
#include "transport/ucx/batch_in.h"

#include <algorithm>
#include <cstring>
#include <new>

namespace tc::transport {

namespace {

constexpr size_t small_chunk_bytes = 64 * 1024;

// How many bytes the frames of a message take, padding included.
Result<size_t> size_of_frames(ByteView batch) {
  size_t at = 0;
  while (at < batch.size()) {
    const size_t left = batch.size() - at;
    if (left < wire::header_bytes)
      return fail(TC_ERR_MALFORMED, "a message of {} bytes ends in the header of a frame at {}", batch.size(), at);
    uint64_t word = 0;
    std::memcpy(&word, batch.data() + at, sizeof word);
    if (word == 0) return fail(TC_ERR_MALFORMED, "a message of {} bytes has no frame at {}", batch.size(), at);
    const size_t length = wire::decode(word).length;
    if (length > left - wire::header_bytes)
      return fail(TC_ERR_MALFORMED, "the frame at {} is {} bytes when only {} are left in its message", at, length,
                  left - wire::header_bytes);
    at += wire::stride(length);
  }
  return at;
}

}  // namespace

struct BatchIn::Chunk {
  explicit Chunk(size_t bytes) : memory(new (std::align_val_t{64}) std::byte[bytes + 32]), end(base() + bytes) {}
  ~Chunk() { ::operator delete[](memory, std::align_val_t{64}); }
  Chunk(const Chunk&) = delete;
  Chunk& operator=(const Chunk&) = delete;

  std::byte* base() const noexcept { return memory + wire::header_bytes; }  // 8 modulo 16, as every header
  void rewind() noexcept {
    tail = base();
    std::memset(tail, 0, wire::header_bytes);
  }

  std::byte* memory;
  std::byte* end;             // `tail` never goes past it; a zero word fits behind it
  std::byte* tail = nullptr;  // where the next message goes; a zero word stands there
  Chunk* next = nullptr;
};

BatchIn::BatchIn(Owner& owner, size_t batch_limit, size_t window)
    : owner_(owner),
      batch_limit_(batch_limit),
      window_(window),
      chunk_bytes_((std::max(batch_limit, small_chunk_bytes) + wire::alignment - 1) & ~(wire::alignment - 1)) {
  dry_at_zero_ = false;
}

BatchIn::~BatchIn() = default;

BatchIn::Chunk& BatchIn::chunk_with_room(size_t size) {
  if (write_ != nullptr && size <= static_cast<size_t>(write_->end - write_->tail)) return *write_;
  if (free_.empty()) {
    chunks_.push_back(std::make_unique<Chunk>(chunk_bytes_));
    free_.reserve(chunks_.size());  // so that release() never allocates
    free_.push_back(chunks_.back().get());
  }
  Chunk* const chunk = free_.back();
  free_.pop_back();
  chunk->rewind();
  chunk->next = nullptr;
  if (write_ != nullptr) write_->next = chunk;
  write_ = chunk;
  if (read_ == nullptr) {
    read_ = chunk;
    cursor_ = end_ = chunk->base();
  }
  return *chunk;
}

Status BatchIn::append(ByteView batch) {
  if (batch.size() > batch_limit_)
    return fail(TC_ERR_TOO_LARGE, "a message is {} bytes when at most {} were agreed", batch.size(), batch_limit_);
  TC_ASSIGN(const size_t size, size_of_frames(batch));
  if (size == 0) return {};
  if (const uint64_t waiting = received_ - consumed(); size > window_ || waiting > window_ - size)
    return fail(TC_ERR_LIMIT, "the peer sent {} bytes ahead when its window is {}", waiting + size, window_);
  Chunk& chunk = chunk_with_room(size);
  std::memcpy(chunk.tail, batch.data(), batch.size());
  std::memset(chunk.tail + batch.size(), 0, size - batch.size() + wire::header_bytes);
  chunk.tail += size;
  received_ += size;
  if (&chunk == read_) end_ = chunk.tail;
  return {};
}

bool BatchIn::refill() noexcept {
  if (const uint64_t word = peek(); word != 0) {
    const auto header = wire::decode(word);  // of a private copy, which append() has checked
    if (header.kind == wire::Kind::pad) advance(header.length);
    return true;
  }
  if (read_ == nullptr || read_->next == nullptr) return false;
  Chunk* const next = read_->next;
  consumed_before_ += static_cast<uint64_t>(cursor_ - read_->base());
  read_->next = done_;
  done_ = read_;
  read_ = next;
  cursor_ = next->base();
  end_ = next->tail;
  return true;
}

void BatchIn::release() noexcept {
  while (done_ != nullptr) {
    free_.push_back(done_);
    done_ = done_->next;
  }
  if (read_ != nullptr && read_->next == nullptr && cursor_ == read_->tail && cursor_ != read_->base()) {
    consumed_before_ += static_cast<uint64_t>(cursor_ - read_->base());  // all read: start over where it is warm
    read_->rewind();
    cursor_ = end_ = read_->base();
  }
  owner_.on_taken();
}

uint64_t BatchIn::consumed() const noexcept {
  return consumed_before_ + (read_ == nullptr ? 0 : static_cast<uint64_t>(cursor_ - read_->base()));
}

}  // namespace tc::transport
