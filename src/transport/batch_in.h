// SPDX-License-Identifier: Apache-2.0
//
// Frames that came in whole messages (active messages, the loopback): a queue of private copies, laid out as a
// stream. Batches are appended behind one another in large chunks, so many small messages cost no more memory
// than their frames.
//
// Thread: the node's. Owns all its memory; allocates only when more frames wait than ever before.
#pragma once

#include <cstring>
#include <memory>
#include <optional>
#include <vector>

#include "base/bytes.h"
#include "transport/stream.h"

namespace tc::transport {

class BatchIn : public InStream {
 public:
  // What a call that runs past the stream touches of it. Where that lies is the owner's choice.
  struct Bypass {
    uint64_t bytes = 0;    // of frames that went past: they count as received and consumed
    bool is_shut = false;  // frames may wait here, and none may overtake them
  };

  // `batch_limit`: the longest batch taken. `window`: how many bytes of frames may wait here unread; stops a
  // peer that ignores flow control from filling our memory.
  BatchIn(size_t batch_limit, size_t window) : BatchIn(batch_limit, window, own_bypass_) {}
  // `bypass` must outlive the stream.
  BatchIn(size_t batch_limit, size_t window, Bypass& bypass);
  ~BatchIn() override;

  // Copies a batch in and returns how many frames it holds. They must fill it exactly, but for the padding of the last
  // one, which may be missing. Refused as a whole otherwise: TC_ERR_MALFORMED, TC_ERR_TOO_LARGE, TC_ERR_LIMIT.
  Result<size_t> append(ByteView batch);
  // The header of the frame at `offset` of a batch, if all of it lies there but for its padding. `offset` is at most the
  // batch's size.
  [[gnu::always_inline]] static std::optional<wire::Header> frame_at(ByteView batch, size_t offset) noexcept {
    const size_t left = batch.size() - offset;
    if (left < wire::header_bytes) return {};
    uint64_t word;
    std::memcpy(&word, batch.data() + offset, sizeof word);
    const auto header = wire::decode(word);
    if (word == 0 || header.length > left - wire::header_bytes) return {};
    return header;
  }
  Bypass& bypass() noexcept { return bypass_; }
  uint64_t received() const noexcept { return received_ + bypass_.bytes; }

  bool refill() noexcept override;
  void release() noexcept override;
  uint64_t consumed() const noexcept override;

 private:
  struct Chunk;

  Error refuse(ByteView batch, size_t offset) const;
  Chunk& chunk_with_room(size_t size);

  Bypass own_bypass_;
  Bypass& bypass_;
  Chunk* read_ = nullptr;         // holds cursor_; the chunks behind it follow by Chunk::next
  Chunk* write_ = nullptr;        // the last one
  uint64_t received_ = 0;         // without what went past, as the next one
  uint64_t consumed_before_ = 0;  // in chunks that were left, or rewound
  Chunk* done_ = nullptr;         // read, kept until release()
  const size_t batch_limit_;
  const size_t window_;
  const size_t chunk_bytes_;
  std::vector<std::unique_ptr<Chunk>> chunks_;
  std::vector<Chunk*> free_;
  alignas(16) std::byte idle_[8] = {};
};

}  // namespace tc::transport
