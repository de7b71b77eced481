// SPDX-License-Identifier: Apache-2.0
//
// The hot half of the transport seam. Frames go out through an OutStream and come in through an InStream, in order.
// Each direction of a connection has one. Behind them stand a shared ring, a socket, or UCX; what differs between them
// is in the virtual slow paths. Writing and finding a frame is inline and the same for all, because all of them lay
// frames out alike (wire/frame.h): header word first, header at an address 8 modulo 16, header written last.
//
// Thread: the one that drives the node. Nothing here allocates or locks on the fast path.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "base/bytes.h"
#include "base/speed.h"
#include "wire/frame.h"

namespace tc::transport {

inline uint64_t load_header(const std::byte* at) noexcept {
  return std::atomic_ref(*reinterpret_cast<uint64_t*>(const_cast<std::byte*>(at))).load(std::memory_order_acquire);
}
inline void store_header(std::byte* at, uint64_t word) noexcept {
  std::atomic_ref(*reinterpret_cast<uint64_t*>(at)).store(word, std::memory_order_release);
}

// Frames are written one behind the other into memory that the peer has in its cache. Asking for the lines early hides
// their way between two cores. In assembly on x86, because compilers turn the builtin into a prefetch for reading.
inline void prefetch_for_store(const std::byte* at) noexcept {
  if constexpr (!speed::prefetch) return;
#if defined(__x86_64__)
  asm volatile("prefetchw %0" : : "m"(*at));
#else
  __builtin_prefetch(at, 1);
#endif
}
inline constexpr ptrdiff_t store_ahead = 1024;

// Copies a small body in whole words: frames reach that far (wire::stride), and `from` must, up to 8 bytes for a body of
// at most 8 and up to 24 for one of at most 24.
inline void copy_body(std::byte* to, const std::byte* from, size_t length) noexcept {
  if (length <= 8)
    std::memcpy(to, from, 8);
  else
    std::memcpy(to, from, length <= 24 ? 24 : length);
}

// A frame whose body lies in several places, none of them empty.
struct GatheredFrame {
  uint64_t header;
  std::span<const ByteView> body;
  size_t length() const noexcept { return static_cast<size_t>(header >> 32); }
};
inline constexpr size_t most_gathered_frames = 16, most_gathered_parts = 6;  // at a time, and in each frame's body

// What a node and the streams of its transport tell each other without a call.
struct Pulse {
  uint64_t turn = 1;       // the node counts it up with every poll: frames of one turn may leave together
  bool gathering = false;  // the node runs frames: what they send leaves at the end of the poll
  bool urgent = true;      // the transport wants progress() with the next poll; else now and then will do
};

class OutStream {
 public:
  virtual ~OutStream() = default;

  // Where a frame with `length` bytes behind its header, at most max_length(), may be built: write the body at the
  // returned address + 8, then commit(). Null when there is no room now: progress and try again. At most one reservation
  // at a time; it may be dropped silently.
  std::byte* reserve(size_t length) noexcept {
    if (wire::stride(length) > static_cast<size_t>(end_ - cursor_)) [[unlikely]]
      return make_room(length);
    return cursor_;
  }

  // Publishes the frame built at the last reservation. Its header's length may be smaller than reserved.
  void commit(uint64_t header) noexcept { finish(header, cursor_ + wire::stride(static_cast<size_t>(header >> 32))); }

  // As commit(), with the whole body taken from `body`, which reaches as far as copy_body() reads.
  void put(uint64_t header, const std::byte* body) noexcept {
    copy_body(cursor_ + wire::header_bytes, body, static_cast<size_t>(header >> 32));
    commit(header);
  }

  // Frames whose bodies lie elsewhere. Where the wire takes bytes from there, they are not copied. How many there was
  // room for.
  virtual size_t put_gathered(std::span<const GatheredFrame> frames) noexcept {
    size_t taken = 0;
    for (const auto& frame : frames) {
      std::byte* const at = reserve(frame.length());
      if (at == nullptr) break;
      std::byte* to = at + wire::header_bytes;
      for (const auto part : frame.body) {
        std::memcpy(to, part.data(), part.size());
        to += part.size();
      }
      commit(frame.header);
      ++taken;
    }
    return taken;
  }

  // Several frames that become visible together: one publication for all. While a burst lives, nothing else is
  // written to the stream.
  class Burst {
   public:
    explicit Burst(OutStream& out) noexcept : out_(out), first_(out.cursor_), cursor_(out.cursor_), end_(out.end_) {}
    // Adds a frame whose body lies at `body`, as for put(). False: no room here.
    bool add(uint64_t header, const std::byte* body) noexcept {
      const auto length = static_cast<size_t>(header >> 32);
      const size_t stride = wire::stride(length);
      if (stride > static_cast<size_t>(end_ - cursor_)) [[unlikely]]
        return false;
      copy_body(cursor_ + wire::header_bytes, body, length);
      if (cursor_ == first_)
        first_header_ = header;
      else
        *reinterpret_cast<uint64_t*>(cursor_) = header;
      cursor_ += stride;
      return true;
    }
    void publish() noexcept {
      if (cursor_ != first_) out_.finish(first_header_, cursor_);
    }

   private:
    OutStream& out_;
    std::byte* const first_;
    std::byte* cursor_;
    std::byte* const end_;
    uint64_t first_header_ = 0;
  };

  // Hands everything committed to the wire. Cheap when there is nothing to do.
  virtual void flush() noexcept = 0;

  // The longest frame that may go this way; longer ones go in pieces. 0 while the stream is not open.
  size_t max_length() const noexcept { return max_length_; }
  // Into which pieces a larger frame is best cut: small enough that both sides work at the same time.
  size_t piece_length() const noexcept { return piece_length_; }

 protected:
  // Slow half of reserve: look again how far the peer is, wrap, hand a full buffer to the wire.
  virtual std::byte* make_room(size_t length) noexcept = 0;
  // Slow half of commit. Called when *attention_ is not 0, when this was the second frame of a turn, and when enough
  // frames were held back.
  virtual void attend() noexcept = 0;

  static constexpr uint64_t no_turn = 0;

  std::byte* cursor_ = nullptr;                   // where the next header goes; 8 modulo 16
  std::byte* end_ = nullptr;                      // the last place where a header may stand
  const volatile uint32_t* attention_ = nullptr;  // never null once the stream is open
  const uint64_t* turn_ = &no_turn;  // a stream that does not count turns looks at no_turn, and lags behind
  uint64_t turn_lag_ = 1;
  uint64_t last_turn_ = 1;
  size_t max_length_ = 0;
  size_t piece_length_ = 0;

  // While cursor_ < held_end_ frames are held back. In memory that the peer polls, the header at held_at_ is kept in
  // held_word_: without it the peer sees none of the frames behind it, and does not fight for cache lines that are
  // still being written.
  std::byte* held_at_ = nullptr;
  std::byte* held_end_ = nullptr;
  uint64_t held_word_ = 0;

 private:
  friend class FlushList;

  void finish(uint64_t header, std::byte* next) noexcept {
    std::byte* const at = cursor_;
    cursor_ = next;
    if (at < held_end_) {
      prefetch_for_store(next + store_ahead);  // may lie past the end of the buffer: it is a hint
      if (at == held_at_)
        held_word_ = header;
      else
        *reinterpret_cast<uint64_t*>(at) = header;
      if (next >= held_end_) [[unlikely]]
        attend();
      return;
    }
    *reinterpret_cast<uint64_t*>(next) = 0;  // "nothing here yet", before the frame itself can be seen
    store_header(at, header);
    prefetch_for_store(next + 64);  // a lone frame's successor: its line is most likely the peer's by now
    // The load must stay behind the store in the program; a peer that falls asleep adds the barrier (Transport::sleep).
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (__atomic_load_n(attention_, __ATOMIC_RELAXED) != 0 || *turn_ == last_turn_) [[unlikely]]
      attend();
    last_turn_ = *turn_ + turn_lag_;
  }

  OutStream* next_unflushed_ = nullptr;  // FlushList's
  bool is_listed_ = false;
};

// The streams that hold committed frames which their peers do not see yet.
class FlushList {
 public:
  explicit FlushList(Pulse& pulse) noexcept : pulse_(pulse) {}
  void add(OutStream& stream) noexcept {
    if (stream.is_listed_) return;
    stream.is_listed_ = true;
    stream.next_unflushed_ = first_;
    first_ = &stream;
    pulse_.urgent = true;
  }
  void remove(OutStream& stream) noexcept {
    if (!stream.is_listed_) return;
    OutStream** link = &first_;
    while (*link != &stream) link = &(*link)->next_unflushed_;
    *link = stream.next_unflushed_;
    stream.is_listed_ = false;
  }
  bool empty() const noexcept { return first_ == nullptr; }
  // Flushes each; a stream that must wait may add itself again.
  void flush_all() noexcept {
    OutStream* stream = first_;
    first_ = nullptr;
    while (stream != nullptr) {
      OutStream* const next = stream->next_unflushed_;
      stream->is_listed_ = false;
      stream->flush();
      stream = next;
    }
  }
  Pulse& pulse() noexcept { return pulse_; }

 private:
  OutStream* first_ = nullptr;
  Pulse& pulse_;
};

class InStream {
 public:
  virtual ~InStream() = default;

  // The header word of the next frame; 0 when none has come.
  uint64_t peek() const noexcept { return load_header(cursor_); }
  const std::byte* at() const noexcept { return cursor_; }
  std::byte* body() noexcept { return cursor_ + wire::header_bytes; }
  // Is all of a frame of this length here? If not, refill() says whether the rest may come or the sender lies.
  bool fits(size_t length) const noexcept { return wire::stride(length) <= static_cast<size_t>(end_ - cursor_); }
  // Takes the frame off. Its bytes stay readable until the next release().
  void advance(size_t length) noexcept { cursor_ += wire::stride(length); }
  // For the receiver, which keeps these two in registers: it says where it is before it runs a frame, and when at()
  // is elsewhere afterwards, the stream was closed meanwhile.
  const std::byte* end() const noexcept { return end_; }
  void seek(const std::byte* at) noexcept { cursor_ = const_cast<std::byte*>(at); }

  // Call when peek() is 0, the frame is a pad, or it does not fit: moves on to where more frames may be. True when peek()
  // is worth another look. False when no whole frame is there, or when there never will be: see broken().
  virtual bool refill() noexcept = 0;

  // Where this is true, a zero word says for sure that no frame has come, and refill() would only say so again.
  bool dry_at_zero() const noexcept { return dry_at_zero_; }

  // Gives consumed memory back to the sender. Call after a run of frames, not after each.
  virtual void release() noexcept = 0;

  // The sender broke the rules of the stream: nothing more can be read.
  bool broken() const noexcept { return broken_; }

 protected:
  // Nothing more is read from here.
  void abandon() noexcept { cursor_ = end_ = nothing_; }

  std::byte* cursor_ = nothing_;
  std::byte* end_ = nothing_;  // the last place where a header may stand
  bool dry_at_zero_ = true;
  bool broken_ = false;

 private:
  alignas(16) std::byte nothing_[8] = {};  // where a stream points that has no frames
};

}  // namespace tc::transport
