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
#include <memory>
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

// Puts pieces together. A peer may begin frames that it never ends, by as many links as it gets. So memory counts as bytes
// come, and not by what the first piece announces; all that a peer announces must fit its share; and pieces must keep coming:
//
//     nothing under way --- first piece ---> collecting --- last piece ---> take(): the frame
//             ^                                  | no memory, or give_up(): the memory is given back
//             '------- last piece ------- dropping: take_refused() has the reason and the frame's beginning, once
class Assembly {
 public:
  Assembly(BufferPool& pool, size_t limit) noexcept : pool_(pool), limit_(limit) {}
  // What this peer's unfinished frames may announce together; null: as much as all peers.
  void set_share(std::shared_ptr<MemoryBudget> share) noexcept { share_ = std::move(share); }

  // True: that was the last piece of a frame that was collected, and take() has it. TC_ERR_MALFORMED, TC_ERR_TOO_LARGE: the
  // sender breaks the rules.
  Result<bool> add(ByteView piece, bool is_last);

  struct Whole {
    wire::FrameHeader header;
    std::byte* body = nullptr;  // at a multiple of 64, in `memory`
    PooledBuffer memory;
  };
  Whole take() noexcept { return std::exchange(whole_, {}); }

  // A frame that is not collected any more.
  struct Refused {
    wire::FrameHeader header;
    Error why;
    Bytes beginning;  // of its body: enough to tell whose it was
  };
  std::optional<Refused> take_refused() noexcept { return std::exchange(refused_, {}); }

  // Is memory held for a frame whose last piece has not come?
  bool is_collecting() const noexcept { return static_cast<bool>(whole_.memory); }
  // Has too little come of it for too long? Call it now and then while the link is read; `passed_ns`: of that time, since the
  // last call.
  bool is_stalled(uint64_t passed_ns) noexcept;
  void give_up(Error why);
  size_t come() const noexcept { return come_; }

  // Within stall_ns, so many bytes must come.
  static constexpr uint64_t stall_ns = 30'000'000'000;
  static constexpr size_t least_bytes = size_t{512} * 1024;

 private:
  Status begin(ByteView piece);
  Status reserve();
  void refuse(ByteView beginning, Error why);

  BufferPool& pool_;
  const size_t limit_;
  std::shared_ptr<MemoryBudget> share_;
  Whole whole_;
  Charge announced_;  // of `share_`
  std::optional<Refused> refused_;
  size_t size_ = 0;  // of the frame under way, header included; 0: there is none
  size_t come_ = 0;
  uint64_t slow_ns_ = 0;  // since `come_` was `slow_from_`, and little has come
  size_t slow_from_ = 0;
};

}  // namespace tc::node
