// SPDX-License-Identifier: Apache-2.0
//
// The hot half of the transport seam: frames go out through an OutStream and come in through an InStream, in
// order. Each direction of a connection has one. What is behind them (a mapped ring, puts, active messages, a
// test's loopback) shows only in the virtual slow paths; writing and finding a frame is inline and the same
// for all ways, because every way lays frames out alike (wire/frame.h) and publishes a header word last.
//
// Thread: the one that drives the node. Nothing here allocates or locks on the fast path.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>

#include "base/bytes.h"
#include "wire/frame.h"

namespace tc::transport {

inline uint64_t load_header(const std::byte* at) noexcept {
  return std::atomic_ref(*reinterpret_cast<uint64_t*>(const_cast<std::byte*>(at))).load(std::memory_order_acquire);
}
inline void store_header(std::byte* at, uint64_t word) noexcept {
  std::atomic_ref(*reinterpret_cast<uint64_t*>(at)).store(word, std::memory_order_release);
}

// Frames are written one behind the other into memory that the peer has in its cache: ask for the lines early, or
// each costs its full way between two cores. (For x86 in assembly: compilers emit a prefetch for reading unless they
// may assume the instruction; where it is missing it does nothing.)
inline void prefetch_for_store(const std::byte* at) noexcept {
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

// Of a frame that leaves and runs by itself: so many bytes at most behind its header. A longer one costs so much that the
// common way is as good.
inline constexpr size_t most_lone_bytes = 1024;

inline void copy_pieces(std::byte* to, std::initializer_list<ByteView> pieces) noexcept {
#pragma GCC unroll 1
  for (const auto piece : pieces) {
    copy_short(to, piece);
    to += piece.size();
  }
}

class Connection;

// Whose frames came since the node last looked, while they are few: else anybody may have sent some.
class Arrivals {
 public:
  void note(Connection* from) noexcept {
    if (from == nullptr || count_ >= most) return note_anybody();
    if (count_ == 0 || from_[count_ - 1] != from) from_[count_++] = from;
  }
  void note_anybody() noexcept { count_ = anybody; }
  // A connection is about to go, and may be among them.
  void forget() noexcept {
    if (count_ != 0) note_anybody();
  }
  void clear() noexcept { count_ = 0; }

  bool from_anybody() const noexcept { return count_ == anybody; }
  size_t size() const noexcept { return count_; }
  Connection* operator[](size_t i) const noexcept { return from_[i]; }

 private:
  static constexpr uint32_t most = 8, anybody = most + 1;
  uint32_t count_ = 0;
  Connection* from_[most];
};

// What a node and the streams of its transport tell each other without a call. What each look touches comes first.
struct Pulse {
  uint64_t turn = 1;      // the node counts it up with every poll: frames of one turn may leave together
  uint64_t arrivals = 0;  // counted by what gets messages: by one for one with one frame, by two for one with several
  bool urgent = true;     // the transport wants progress() with the next poll; else now and then will do
  // Peers write straight into our memory, so that frames appear there at any time. Else they come out of progress() and
  // sleep() alone, which count them up: the node need not touch its links to find that there is nothing.
  bool direct = true;
  // The node sets it around progress() and sleep() while messages come one by one: a lone call may then go to
  // Events::on_call() as soon as it is here. Where messages come in bunches it does not: what a call sends would leave
  // before it could be gathered with what the others send.
  bool at_once = false;
  bool hands_over = false;  // the transport's: may the message that comes next go there? The first one of a turn may
  // The node runs frames while others wait behind them: what they send leaves together, with Transport::flush().
  bool gathering = false;
  bool due = false;  // the transport's: something waits for progress() that a look for messages does not see to
};

class OutStream {
 public:
  virtual ~OutStream() = default;

  // Where a frame with `length` bytes behind its header may be built: write the body at the returned address
  // + 8, then commit(). Null when there is no room now (the peer is behind: progress and try again) or when
  // length > max_length() (use fragments). At most one reservation at a time; it may be dropped silently.
  std::byte* reserve(size_t length) noexcept {
    if (wire::stride(length) > static_cast<size_t>(end_ - cursor_)) [[unlikely]]
      return make_room(length);
    return cursor_;
  }

  // Publishes the frame built at the last reservation. Its header's length may be smaller than reserved.
  void commit(uint64_t header) noexcept { finish(header, cursor_ + wire::stride(static_cast<size_t>(header >> 32))); }

  // The whole of a frame that most likely has no other behind it in this turn, its body in pieces: where frames leave in
  // messages it leaves by a shorter way, which touches less memory. False: no room, as for reserve().
  virtual bool put_alone(uint64_t header, std::initializer_list<ByteView> body) noexcept {
    std::byte* const at = reserve(static_cast<size_t>(header >> 32));
    if (at == nullptr) return false;
    copy_pieces(at + wire::header_bytes, body);
    commit(header);
    return true;
  }

  // As commit(), with the whole body taken from `body`, which reaches as far as copy_body() reads.
  void put(uint64_t header, const std::byte* body) noexcept {
    copy_body(cursor_ + wire::header_bytes, body, static_cast<size_t>(header >> 32));
    commit(header);
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

  // The peer has taken `consumed` bytes off this stream (CREDIT). Ignored by ways that see it for themselves.
  // A value that goes backwards or beyond what was sent is a lie: returns false.
  virtual bool credit(uint64_t consumed) noexcept = 0;

  // The longest `length` that reserve() can ever grant on this way.
  size_t max_length() const noexcept { return max_length_; }

 protected:
  // Slow half of reserve: look again how far the peer is, wrap, hand a full batch to the wire.
  virtual std::byte* make_room(size_t length) noexcept = 0;
  // Slow half of commit. Either *attention_ is not 0: wake a sleeping peer, or send the first frame at once. Or this
  // was the second frame of a turn: begin to hold frames back. Or enough were held back: publish them.
  virtual void attend() noexcept = 0;

  static constexpr uint64_t no_turn = 0;

  std::byte* cursor_ = nullptr;                   // where the next header goes; 8 modulo 16
  std::byte* end_ = nullptr;                      // the last place where a header may stand
  const volatile uint32_t* attention_ = nullptr;  // never null once the way is open
  const uint64_t* turn_ = &no_turn;               // a way that does not coalesce looks at no_turn, and lags behind it
  uint64_t turn_lag_ = 1;
  uint64_t last_turn_ = 1;
  size_t max_length_ = 0;

  // Coalescing in memory that the peer polls: while cursor_ < held_end_, the header at held_at_ is kept in
  // held_word_, and without it the peer sees none of the frames behind it either. So it does not wrestle with us for
  // cache lines that we still write to.
  std::byte* held_at_ = nullptr;
  std::byte* held_end_ = nullptr;
  uint64_t held_word_ = 0;

 private:
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
    // The load must stay behind the store in the program; a peer that falls asleep adds the barrier (see sleep()).
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (__atomic_load_n(attention_, __ATOMIC_RELAXED) != 0 || *turn_ == last_turn_) [[unlikely]]
      attend();
    last_turn_ = *turn_ + turn_lag_;
  }
};

class InStream {
 public:
  virtual ~InStream() = default;

  // The header word of the next frame; 0 when none has come.
  uint64_t peek() const noexcept { return load_header(cursor_); }
  const std::byte* at() const noexcept { return cursor_; }
  std::byte* body() noexcept { return cursor_ + wire::header_bytes; }
  // May a frame of this length stand here? No: the sender lies, drop the link.
  bool fits(size_t length) const noexcept { return wire::stride(length) <= static_cast<size_t>(end_ - cursor_); }
  // Takes the frame off. Its bytes stay readable until the next release().
  void advance(size_t length) noexcept { cursor_ += wire::stride(length); }
  // For the receiver, which keeps these two in registers: it says where it is before it runs a frame, and when at()
  // is elsewhere afterwards, the stream was closed meanwhile.
  const std::byte* end() const noexcept { return end_; }
  void seek(const std::byte* at) noexcept { cursor_ = const_cast<std::byte*>(at); }

  // Call when peek() is 0 or the frame is a pad: moves on to where more frames may be (the next batch, the
  // ring's start). True when peek() is worth another look; false when nothing is there. A pad that does not
  // lead to the start of the ring makes it fail: see broken().
  virtual bool refill() noexcept = 0;

  // Where this is true, a zero word says for sure that no frame has come, and refill() would only say so again.
  bool dry_at_zero() const noexcept { return dry_at_zero_; }

  // Gives consumed memory back to the sender. Call after a run of frames, not after each.
  virtual void release() noexcept = 0;

  // Bytes of frames taken off so far, pads included; what CREDIT reports.
  virtual uint64_t consumed() const noexcept = 0;

  virtual bool broken() const noexcept { return false; }

 protected:
  std::byte* cursor_ = nullptr;  // never null: an idle stream points at a zero word of its own
  std::byte* end_ = nullptr;     // the last place where a header may stand
  bool dry_at_zero_ = false;
};

}  // namespace tc::transport
