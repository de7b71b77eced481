// SPDX-License-Identifier: Apache-2.0
//
// Frames that come in, in order: one direction of a connection. Finding a frame is inline and the same for all
// transports, because all of them lay frames out alike (wire/frame.h): the header word comes first, stands at an
// address 8 modulo 16, and is written last. What differs between a shared ring and a stream of bytes is in refill()
// and release().
//
//     while (in.peek() != 0 && in.fits(length)) { handle(in.body()); in.advance(length); }
//     in.release();
//
// Thread: the node's. Nothing here allocates or locks.
#pragma once

#include <cstddef>
#include <cstdint>

#include "transport/header_word.h"
#include "wire/frame.h"

namespace tc::transport {

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
  void advance(size_t length) noexcept { cursor_ += wire::stride(length); }
  // For a receiver that keeps cursor and end in registers. It calls seek() with its position before it runs a frame.
  // When at() differs afterwards, the frame has closed the stream.
  const std::byte* end() const noexcept { return end_; }
  void seek(const std::byte* at) noexcept { cursor_ = const_cast<std::byte*>(at); }

  // Call when the next frame is a pad, does not fit, or has not come: moves on to where more frames may be. True:
  // peek() again. False: no whole frame is there, or there will never be one: see broken().
  virtual bool refill() noexcept = 0;

  // Gives consumed memory back to the sender. Call after a run of frames, not after each.
  virtual void release() noexcept = 0;

  // The sender broke the rules of the stream: nothing more can be read.
  bool broken() const noexcept { return broken_; }

 protected:
  // Makes the stream an empty one.
  void abandon() noexcept { cursor_ = end_ = empty_; }

  std::byte* cursor_ = empty_;
  std::byte* end_ = empty_;  // the last place where a header may stand
  bool broken_ = false;

 private:
  alignas(16) std::byte empty_[8] = {};  // where a stream without frames points
};

}  // namespace tc::transport
