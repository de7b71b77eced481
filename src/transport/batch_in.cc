// SPDX-License-Identifier: Apache-2.0
#include "transport/batch_in.h"

#include <algorithm>
#include <cstring>
#include <new>

namespace tc::transport {

namespace {

constexpr size_t small_chunk_bytes = 64 * 1024;

uint64_t header_at(ByteView batch, size_t offset) noexcept {
  uint64_t word;
  std::memcpy(&word, batch.data() + offset, sizeof word);
  return word;
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
  std::byte* tail = nullptr;  // where the next batch goes; a zero word stands there
  Chunk* next = nullptr;
};

BatchIn::BatchIn(size_t batch_limit, size_t window, Bypass& bypass)
    : bypass_(bypass),
      batch_limit_(batch_limit),
      window_(window),
      chunk_bytes_((std::max(batch_limit, small_chunk_bytes) + wire::alignment - 1) & ~(wire::alignment - 1)) {
  cursor_ = end_ = idle_;
}

BatchIn::~BatchIn() = default;

// Why append() stopped at `offset`.
Error BatchIn::refuse(ByteView batch, size_t offset) const {
  if (batch.size() > batch_limit_)
    return {TC_ERR_TOO_LARGE,
            fmt::format("a batch is {} bytes when at most {} were agreed", batch.size(), batch_limit_)};
  const size_t left = batch.size() - offset;
  if (left < wire::header_bytes)
    return {TC_ERR_MALFORMED,
            fmt::format("a batch of {} bytes ends in the header of a frame at {}", batch.size(), offset)};
  const uint64_t header = header_at(batch, offset);
  if (header == 0)
    return {TC_ERR_MALFORMED, fmt::format("a batch of {} bytes has no frame at {}", batch.size(), offset)};
  return {TC_ERR_MALFORMED, fmt::format("the frame at {} is {} bytes when only {} are left in its batch", offset,
                                        wire::decode(header).length, left - wire::header_bytes)};
}

[[gnu::hot]] BatchIn::Chunk& BatchIn::chunk_with_room(size_t size) {
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

[[gnu::hot]] Result<size_t> BatchIn::append(ByteView batch) {
  if (batch.size() > batch_limit_) return fail(refuse(batch, 0));
  size_t frames = 0;
  size_t size = 0;  // of the frames, the last one's padding included
  for (; size < batch.size(); ++frames) {
    const auto header = frame_at(batch, size);
    if (!header) [[unlikely]]
      return fail(refuse(batch, size));
    size += wire::stride(header->length);
  }
  if (frames == 0) return 0;
  if (const uint64_t waiting = received() - BatchIn::consumed(); size > window_ || waiting > window_ - size)
    return fail(TC_ERR_LIMIT, "the peer sent {} bytes ahead when its window is {}", waiting + size, window_);
  Chunk& chunk = chunk_with_room(size);
  bypass_.is_shut = true;
  std::memcpy(chunk.tail, batch.data(), batch.size());
  std::memset(chunk.tail + batch.size(), 0, size - batch.size() + wire::header_bytes);
  chunk.tail += size;
  received_ += size;
  if (&chunk == read_) end_ = chunk.tail;
  return frames;
}

[[gnu::hot]] bool BatchIn::refill() noexcept {
  if (const uint64_t header = peek(); header != 0) {  // a pad
    const size_t length = wire::decode(header).length;
    if (wire::decode(header).kind != wire::Kind::pad || !fits(length)) return true;
    advance(length);
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

[[gnu::hot]] void BatchIn::release() noexcept {
  while (done_ != nullptr) {
    free_.push_back(done_);
    done_ = done_->next;
  }
  if (read_ == nullptr || read_->next != nullptr || cursor_ != read_->tail) return;
  bypass_.is_shut = false;
  if (cursor_ == read_->base()) return;
  consumed_before_ += static_cast<uint64_t>(cursor_ - read_->base());  // all read: start over where it is warm
  read_->rewind();
  cursor_ = end_ = read_->base();
}

[[gnu::hot]] uint64_t BatchIn::consumed() const noexcept {
  return bypass_.bytes + consumed_before_ + (read_ == nullptr ? 0 : static_cast<uint64_t>(cursor_ - read_->base()));
}

}  // namespace tc::transport
