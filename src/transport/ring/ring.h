// SPDX-License-Identifier: Apache-2.0
//
// Rings in shared memory: their layout (RingView), the memory of a connection (RingMemory), and the two ends of a ring,
// RingIn and RingOut. Each ring has one writing and one reading process.
//
// Thread: the node's.
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>

#include "base/fd.h"
#include "base/result.h"
#include "transport/stream.h"
#include "wire/frame.h"

namespace tc::transport {

// The memory of a ring: a control area that both sides write, then the frames, which only the sender writes.
//
//     | consumed | sleeping |   | frame | frame | ... | 0 | free ... | pad to the end |
//       control area, 128 B     ^ offset 8            ^ the sender's next header
//
// Positions count bytes from the beginning of the connection and start at 8. A frame at position p has its header at
// offset p & (bytes - 1), which is always 8 modulo 16. A frame never wraps: it ends at bytes - 8 at the latest. A pad
// leads to offset 8 of the next lap, where the next frame does not fit, or the writer wants it there. No pad leads
// anywhere else.
//
// The writer may go to the next lap before the end: as long as no frame is so large that it goes in pieces, all stay in the
// first `usual` bytes, and what is behind them has no memory.
//
// Before a header becomes visible, the word at the next header's place is zero, so that the receiver stops there
// without writing anything. For this the sender needs one word of margin: a frame of stride s may be written at p when
// p + s + 8 <= consumed + bytes.
//
// Thread: any, for the functions of the layout. Each ring has one writing and one reading thread.
struct RingControl {
  // Written by the receiver: the linear position up to which it has read.
  alignas(64) uint64_t consumed;
  // The receiver sets 1 before it sleeps. A sender that finds 1 exchanges it for 0 and wakes the receiver.
  alignas(64) uint32_t sleeping;
};

inline constexpr uint64_t ring_start = wire::header_bytes;
inline constexpr size_t ring_data_offset = sizeof(RingControl);
inline constexpr size_t min_ring_bytes = 4096;
inline constexpr size_t max_ring_bytes = size_t{1} << 30;

constexpr bool ring_size_is_valid(size_t bytes) noexcept {
  return std::has_single_bit(bytes) && bytes >= min_ring_bytes && bytes <= max_ring_bytes;
}
// Memory needed for a ring of `bytes`.
constexpr size_t ring_memory_bytes(size_t bytes) noexcept { return ring_data_offset + bytes; }
// A quarter of what is used, so that one long frame does not have to wait until the ring is empty.
constexpr size_t ring_max_length(size_t bytes) noexcept { return bytes / 4 - wire::alignment; }
// For pieces of a large frame: while one is written, the ones before it are read.
constexpr size_t ring_piece_length(size_t bytes) noexcept { return bytes / 16 - wire::alignment; }

// One side's view of a ring.
struct RingView {
  RingControl* control = nullptr;
  std::byte* data = nullptr;
  size_t bytes = 0;

  static RingView at(void* memory, size_t bytes) noexcept {
    return {static_cast<RingControl*>(memory), static_cast<std::byte*>(memory) + ring_data_offset, bytes};
  }
  std::byte* place(uint64_t position) const noexcept { return data + (position & (bytes - 1)); }
  std::byte* last_place() const noexcept { return data + bytes - wire::header_bytes; }
  // From a position to offset 8 of the next lap: the stride of a pad there.
  uint64_t to_next_lap(uint64_t position) const noexcept { return bytes - (position & (bytes - 1)) + ring_start; }
};
static_assert(ring_data_offset % 64 == 0);

// The memory of a shared-memory connection: two rings in one sealed memfd. It has no name by which another process
// could open it; its descriptor is sent to the peer on a Unix socket.
//
// The seals forbid to shrink the file: reading beyond its end would be a SIGBUS. They do not forbid to punch holes, but
// the bytes of a hole read as zero.
//
// Thread: any.
class RingMemory {
 public:
  // The two sides of the connection. Each writes to one ring and reads from the other.
  enum class Side : uint8_t { creator, receiver };

  RingMemory() = default;
  // Two empty rings of `bytes` each. TC_ERR_NO_MEMORY, TC_ERR_IO.
  static Result<RingMemory> create(size_t bytes);
  // Memory that a peer created. TC_ERR_MALFORMED when it is not what create() makes.
  static Result<RingMemory> adopt(Fd descriptor, size_t bytes);
  ~RingMemory() { unmap(); }
  RingMemory(RingMemory&& other) noexcept;
  RingMemory& operator=(RingMemory&& other) noexcept;

  RingView written_by(Side side) const noexcept;
  size_t bytes() const noexcept { return bytes_; }
  const Fd& descriptor() const noexcept { return descriptor_; }
  // The mapping stays. Call when the peer has the descriptor.
  void close_descriptor() noexcept { descriptor_.reset(); }

 private:
  Status map(size_t bytes);
  void unmap() noexcept;

  Fd descriptor_;
  void* memory_ = nullptr;
  size_t bytes_ = 0;  // of each ring
};

// Frames that a peer writes into a ring in shared memory.
//
// A hostile peer may change the ring's bytes at any time. So each header is loaded once, every length is checked
// against our own position, and no state that we depend on is read back from the ring.
class RingIn final : public InStream {
 public:
  // Turns new memory into an empty ring.
  static void start(const RingView& ring) noexcept;

  // Reads from this ring from now on; its memory must stay until shut(). `usual`: as RingOut::open(); how often the writer
  // is told depends on it.
  void open(const RingView& ring, size_t usual) noexcept;
  void open(const RingView& ring) noexcept { open(ring, ring.bytes); }
  // Reads nothing more; the memory may be unmapped.
  void shut() noexcept;

  bool refill() noexcept override;
  void release() noexcept override;

  // Sets the flag that senders check after each frame.
  void set_sleeping(bool sleeping) noexcept;
  // Bytes of frames taken off so far.
  uint64_t consumed() const noexcept { return position() - ring_start; }

 private:
  bool is_open() const noexcept { return ring_.data != nullptr; }
  uint64_t position() const noexcept {
    return is_open() ? lap_ + static_cast<uint64_t>(cursor_ - ring_.data) : lap_ + ring_start;
  }

  RingView ring_;
  uint64_t lap_ = 0;        // the linear position of offset 0 in this lap; once shut, of what was consumed
  uint64_t published_ = 0;  // the last value of RingControl::consumed
  size_t step_ = 0;         // so much is read before the next one, while more is there
};

// Frames written straight into a ring that a peer reads. The first frame of a poll is visible at once. Those behind it
// become visible together, as a batch: when there is 1 KiB of them, with flush(), or with the next progress().
//
// The peer may write anything into the control area. It can only harm its own ring: a position that goes backwards, or
// past what was written, is ignored.
class RingOut final : public OutStream {
 public:
  // `ring_doorbell` wakes a sleeping reader. It must not throw.
  RingOut(FlushList& list, std::function<void()> ring_doorbell) noexcept;
  ~RingOut() override { list_.remove(*this); }

  // Writes frames into this ring from now on; its memory must stay until shut(). `usual`: how much of it is used
  // as long as there are no pieces.
  void open(const RingView& ring, size_t usual) noexcept;
  void open(const RingView& ring) noexcept { open(ring, ring.bytes); }
  // Grants nothing from now on, and accesses the ring no more.
  void shut() noexcept;

  void flush() noexcept override;
  size_t put_gathered(std::span<const GatheredFrame> frames) noexcept override;
  // Bytes of frames committed so far, and how many of them the reader has not taken off.
  uint64_t written() const noexcept { return is_open() ? position() - ring_start : lap_; }
  uint64_t unread() const noexcept;
  // As Transport::trim(): the memory that only pieces use.
  uint64_t trim(uint64_t now_ns) noexcept;

 private:
  std::byte* make_room(size_t length) noexcept override;
  void slow_commit() noexcept override;
  bool is_open() const noexcept { return ring_.data != nullptr; }
  uint64_t position() const noexcept { return lap_ + static_cast<uint64_t>(cursor_ - ring_.data); }
  void update_consumed() noexcept;
  void set_end() noexcept;
  size_t to_round_end() const noexcept { return static_cast<size_t>(std::max(round_end_, cursor_) - cursor_); }
  // Makes the frames of the batch visible.
  void publish() noexcept;
  void start_batch() noexcept;
  void wake_reader() noexcept;
  void end_batch() noexcept { batch_at_ = batch_end_ = nullptr; }

  FlushList& list_;
  const std::function<void()> ring_doorbell_;
  RingView ring_;
  std::byte* round_end_ = nullptr;  // the last place where a header may stand: at the end of the ring, or this one
  std::byte* usual_end_ = nullptr;  // as long as there are no pieces of large frames
  bool were_pieces_ = false;        // since the last look of trim() ...
  uint64_t pieces_until_ns_ = 0;    // ... and none after this one
  uint64_t lap_ = 0;                // as in RingIn; once shut, of what was written
  uint64_t consumed_ = 0;           // the last plausible value of RingControl::consumed
};

}  // namespace tc::transport
