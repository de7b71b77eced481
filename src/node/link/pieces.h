// SPDX-License-Identifier: Apache-2.0
//
// Frames that are too large to be written at once travel in pieces, one `fragment` frame each: the sender writes a piece
// while the receiver reads the ones before it, in memory that both have in their caches. No other frame may come
// between, so at most one such frame is on its way on a link.
//
// Thread: the node's.
#pragma once

#include <array>
#include <initializer_list>
#include <optional>
#include <span>
#include <utility>

#include "base/buffer_pool.h"
#include "transport/stream.h"

namespace tc::node {

// The number of a fragment frame.
inline constexpr uint32_t more_pieces = 0, last_piece = 1;

// A frame in several places: its header word, and up to five parts of its body.
class FrameParts {
 public:
  FrameParts(uint64_t word, std::initializer_list<ByteView> body) noexcept : word_(word) {
    for (const auto part : body) parts_[count_++] = part;
  }
  std::span<const ByteView> parts() noexcept {
    parts_[0] = std::as_bytes(std::span(&word_, 1));
    return {parts_.data(), count_};
  }

 private:
  uint64_t word_;
  size_t count_ = 1;
  std::array<ByteView, transport::most_gathered_parts> parts_;
};

// Writes pieces of the frame that lies in `parts`, its header word first, from byte `from` on, as far as there is room.
// Up to which byte; `from` when there was none.
size_t write_pieces(transport::OutStream& out, std::span<const ByteView> parts, size_t from) noexcept;

// Puts pieces together. Where there is no memory for a frame its pieces are dropped, and the frame is refused when the
// last one has come.
class Assembly {
 public:
  Assembly(BufferPool& pool, size_t limit) noexcept : pool_(pool), limit_(limit) {}

  // True: that was the last piece, and take() has the frame. TC_ERR_MALFORMED, TC_ERR_TOO_LARGE: the sender breaks the
  // rules.
  Result<bool> add(ByteView piece, bool is_last);

  struct Whole {
    wire::FrameHeader header;
    std::byte* body = nullptr;  // at a multiple of 64, in `memory`
    PooledBuffer memory;
    std::optional<Error> refused;  // there was no memory: `body` is null
    Bytes beginning;               // of a refused frame's body: enough to tell whose it was
  };
  Whole take() noexcept { return std::exchange(whole_, {}); }

 private:
  Status begin(ByteView piece);

  BufferPool& pool_;
  const size_t limit_;
  Whole whole_;
  size_t size_ = 0;  // of the frame under way, header included; 0: there is none
  size_t come_ = 0;
};

}  // namespace tc::node
