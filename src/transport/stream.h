// SPDX-License-Identifier: Apache-2.0
//
// The two directions of a connection: frames come by an InStream and leave by an OutStream. All transports lay frames out
// alike (wire/frame.h), so finding and storing a frame is inline. A FlushList has the streams that hold frames back.
//
// Thread: the node's.
#pragma once

#include <atomic>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "base/bytes.h"
#include "base/speed.h"
#include "wire/frame.h"

namespace tc::transport {

// The header word of a frame in memory that two threads or processes share. It is written last and read first: a
// thread that loads a header sees the body that was stored before it.
//
// Thread: any.
inline uint64_t load_header(const std::byte* at) noexcept {
  return std::atomic_ref(*reinterpret_cast<uint64_t*>(const_cast<std::byte*>(at))).load(std::memory_order_acquire);
}
inline void store_header(std::byte* at, uint64_t word) noexcept {
  std::atomic_ref(*reinterpret_cast<uint64_t*>(at)).store(word, std::memory_order_release);
}

// Frames that come in, in order: one direction of a connection. Finding a frame is inline and the same for all
// transports, because all of them lay frames out alike (wire/frame.h): the header word comes first, stands at an
// address 8 modulo 16, and is written last. What differs between a shared ring and a stream of bytes is in refill()
// and release().
//
//     while (in.peek() != 0 && in.fits(length)) { handle(in.body()); in.advance(length); }
//     in.release();
//
// Thread: the node's. Nothing here allocates or locks.
class InStream {
 public:
  virtual ~InStream() = default;

  // The header word of the next frame; 0 when none has come.
  uint64_t peek() const noexcept { return load_header(cursor_); }
  const std::byte* at() const noexcept { return cursor_; }
  std::byte* body() noexcept { return cursor_ + wire::header_bytes; }
  // Is all of a frame of this length here? If not, refill() tells whether the rest may come or the header is wrong.
  bool fits(size_t length) const noexcept { return wire::stride(length) <= static_cast<size_t>(end_ - cursor_); }
  // Takes the frame off. Its bytes stay readable until the next release().
  void advance(size_t length) noexcept {
    assert(fits(length));
    cursor_ += wire::stride(length);
  }
  // For a receiver that keeps cursor and end in registers. It calls seek() with its position before it runs a frame.
  // When at() differs afterwards, the frame has closed the stream.
  const std::byte* end() const noexcept { return end_; }
  void seek(const std::byte* at) noexcept { cursor_ = const_cast<std::byte*>(at); }

  // Call when the next frame is a pad, does not fit, or has not come: moves on to where more frames may be. True:
  // peek() again. False: no whole frame is there, or there will never be one: see broken().
  virtual bool refill() noexcept = 0;

  // Gives consumed memory back to the sender. Call after a run of frames, not after each.
  virtual void release() noexcept = 0;

  // Whoever runs calls straight off the stream counts them here, where it writes anyway.
  void count_calls(size_t calls) noexcept { calls_ += calls; }
  uint64_t calls() const noexcept { return calls_; }

  // The sender broke the rules of the stream: nothing more can be read.
  bool broken() const noexcept { return broken_; }

 protected:
  // Makes the stream an empty one.
  void abandon() noexcept { cursor_ = end_ = empty_; }

  std::byte* cursor_ = empty_;
  std::byte* end_ = empty_;  // the last place where a header may stand
  bool broken_ = false;

 private:
  uint64_t calls_ = 0;
  alignas(16) std::byte empty_[8] = {};  // where a stream without frames points
};

// What a node and the streams of its transport share, so that neither has to call the other in each poll.
struct PollState {
  uint64_t poll_number = 1;  // the node counts it up with every poll: frames of one poll may leave together
  bool gathering = false;    // the node runs frames: what they send leaves at the end of the poll
  bool urgent = true;        // the transport needs progress() in each poll, not only now and then
  bool late = false;         // code ran for so long that the next progress() does all that is due now and then
};

// Frames are written one behind the other into memory that the peer has in its cache. Requesting the lines early hides
// the time that they take from one core to the other. In assembly on x86, because compilers turn the builtin into a
// prefetch for reading.
inline void prefetch_for_store(const std::byte* at) noexcept {
  if constexpr (!speed::prefetch) return;
#if defined(__x86_64__)
  asm volatile("prefetchw %0" : : "m"(*at));
#else
  __builtin_prefetch(at, 1);
#endif
}
inline constexpr ptrdiff_t prefetch_distance = 1024;

// Copies a small body in whole words. The destination has room for that (wire::stride). `from` must be readable up to
// 8 bytes for a body of at most 8, and up to 24 for one of at most 24.
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

// Frames that go out, in order: one direction of a connection. Writing a frame is inline and the same for all
// transports, because all of them lay frames out alike (wire/frame.h): the header word comes first, stands at an
// address 8 modulo 16, and is written last. What differs between a shared ring and a stream of bytes is in the
// virtual slow paths, make_room() and slow_commit().
//
//     if (std::byte* at = out.reserve(length)) { write the body at `at` + 8; out.commit(header); }
//
// Thread: the node's. Nothing here allocates or locks.
class OutStream {
 public:
  virtual ~OutStream() = default;

  // Where a frame with `length` bytes behind its header may be built: write the body at the returned address + 8, then
  // commit(). The caller checks that `length` is at most max_length(): there may be room for more than the peer takes in
  // one frame. Null when there is no room now: progress and try again. At most one reservation at a time; it may be
  // dropped silently.
  std::byte* reserve(size_t length) noexcept {
    if (wire::stride(length) > static_cast<size_t>(end_ - cursor_)) [[unlikely]]
      return make_room(length);
    return cursor_;
  }

  // Publishes the frame built at the last reservation. Its header's length may be smaller than reserved.
  void commit(uint64_t header) noexcept {
    const size_t stride = wire::stride(static_cast<size_t>(header >> 32));
    assert(stride <= static_cast<size_t>(end_ - cursor_));
    finish(header, cursor_ + stride);
  }

  // As commit(), with the whole body taken from `body`, which must be readable as far as copy_body() reads.
  void put(uint64_t header, const std::byte* body) noexcept {
    copy_body(cursor_ + wire::header_bytes, body, static_cast<size_t>(header >> 32));
    commit(header);
  }

  // Frames whose bodies lie elsewhere. They are not copied where the transport can send from there. Returns how many
  // there was room for.
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

  // Several frames that become visible together: the first header is stored last. While a burst lives, nothing else is
  // written to the stream.
  class Burst {
   public:
    explicit Burst(OutStream& out) noexcept : out_(out), first_(out.cursor_), cursor_(out.cursor_), end_(out.end_) {}
    // Adds a frame with this body, as put() does, at most max_length() bytes. False: no room here.
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

  // Sends everything committed. Cheap when there is nothing to do.
  virtual void flush() noexcept = 0;

  // The longest frame that the stream takes; longer ones go in pieces. 0 while the stream is not open.
  size_t max_length() const noexcept { return max_length_; }
  // The best size for those pieces: small enough that both sides work at the same time.
  size_t piece_length() const noexcept { return piece_length_; }

 protected:
  // The slow half of reserve(): reads how far the peer is, wraps around, sends a full buffer.
  virtual std::byte* make_room(size_t length) noexcept = 0;
  // The slow half of commit(). Called
  //   - when *slow_commit_flag_ is not 0 (the reader sleeps, or the stream is a buffer that has to be sent),
  //   - for the second frame of a poll, from which on frames may be held back as a batch,
  //   - when the batch is full.
  virtual void slow_commit() noexcept = 0;

  static constexpr uint64_t no_poll = 0;

  std::byte* cursor_ = nullptr;                          // where the next header goes; 8 modulo 16
  std::byte* end_ = nullptr;                             // the last place where a header may stand
  const volatile uint32_t* slow_commit_flag_ = nullptr;  // never null once the stream is open
  // The poll that the last frame was committed in, to recognise the second one. A stream that does not need this reads
  // no_poll, and its lag keeps the two numbers from ever being equal.
  const uint64_t* poll_number_ = &no_poll;
  uint64_t poll_lag_ = 1;
  uint64_t last_poll_ = 1;
  size_t max_length_ = 0;
  size_t piece_length_ = 0;

  // While cursor_ < batch_end_, frames are held back as a batch. In memory that the peer polls, the first header of the
  // batch, which belongs at batch_at_, waits in batch_header_. Without it the peer sees none of the frames behind it,
  // so it does not load cache lines that are still being written.
  std::byte* batch_at_ = nullptr;
  std::byte* batch_end_ = nullptr;
  uint64_t batch_header_ = 0;

 private:
  friend class FlushList;

  // Publishes the frame at cursor_, with its body in place; the next one goes to `next`. Two cases:
  //   held back   the header is written without ordering, because the batch's first header is still missing;
  //   visible     first the word at `next` becomes 0, so that the reader stops there, then the header is released.
  void finish(uint64_t header, std::byte* next) noexcept {
    std::byte* const at = cursor_;
    cursor_ = next;
    if (at < batch_end_) {
      prefetch_for_store(next + prefetch_distance);  // may lie past the end of the buffer: it is a hint
      if (at == batch_at_)
        batch_header_ = header;
      else
        *reinterpret_cast<uint64_t*>(at) = header;
      if (next >= batch_end_) [[unlikely]]
        slow_commit();
      return;
    }
    *reinterpret_cast<uint64_t*>(next) = 0;  // "nothing here yet", before the frame itself can be seen
    store_header(at, header);
    prefetch_for_store(next + 64);  // where the next single frame goes: its line is most likely the peer's by now
    // The load must stay behind the store in the program; a peer that falls asleep adds the barrier (Transport::sleep).
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (__atomic_load_n(slow_commit_flag_, __ATOMIC_RELAXED) != 0 || *poll_number_ == last_poll_) [[unlikely]]
      slow_commit();
    last_poll_ = *poll_number_ + poll_lag_;
  }

  OutStream* next_unflushed_ = nullptr;  // FlushList's
  bool is_listed_ = false;
};

// The streams that have committed frames which their peers do not see yet. A stream adds itself when it holds frames
// back; the transport flushes all of them at the end of a poll.
//
// Thread: the node's. Nothing here allocates: the list is linked through the streams.
class FlushList {
 public:
  explicit FlushList(PollState& poll_state) noexcept : poll_state_(poll_state) {}
  void add(OutStream& stream) noexcept {
    if (stream.is_listed_) return;
    stream.is_listed_ = true;
    stream.next_unflushed_ = first_;
    first_ = &stream;
    poll_state_.urgent = true;
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
  PollState& poll_state() noexcept { return poll_state_; }

 private:
  OutStream* first_ = nullptr;
  PollState& poll_state_;
};

}  // namespace tc::transport
