// SPDX-License-Identifier: Apache-2.0
//
// Frames that leave in whole messages, which UCX may still read after it was given them: what Active Messages and puts
// have in common. Frames are written into a buffer; the first one that the application sends after a poll leaves at once,
// and those behind it are gathered until the buffer is full, flush(), or the next progress().
//
// Flow control: at most `window` bytes of frames are on their way without the peer's credit.
// Thread: the node's.
#pragma once

#include <memory>
#include <vector>

#include "transport/stream.h"

namespace tc::transport {

class BatchOut;

// One message being filled or on its way. Frames begin at 8 modulo 16, and in front of them is room for eight bytes.
struct OutBuffer {
  explicit OutBuffer(size_t bytes);  // may throw std::bad_alloc
  ~OutBuffer();
  OutBuffer(const OutBuffer&) = delete;
  OutBuffer& operator=(const OutBuffer&) = delete;
  std::byte* base() const noexcept { return memory + wire::header_bytes; }

  std::byte* const memory;
  const size_t bytes;         // frames it holds
  unsigned operations = 0;    // of UCX that still read it
  BatchOut* owner = nullptr;  // null once the stream is gone: whoever completes the last operation deletes the buffer
};

class BatchOut : public OutStream {
 public:
  explicit BatchOut(FlushList& list) noexcept : list_(list) { attention_ = &always; }
  ~BatchOut() override;

  // Frames may be reserved from now on. `batch_bytes` and `window_bytes` are both sides' smaller wish; frames are
  // at most half of the window, so that a long one need not wait until all before it was credited.
  void open(size_t batch_bytes, size_t window_bytes);
  // Nothing is granted any more; what was committed and not sent is dropped.
  void shut() noexcept;

  void flush() noexcept override;
  // The same, however many messages are on their way: the last one.
  void finish() noexcept { send(); }
  // The peer has taken `consumed` bytes of frames. False: that goes backwards, or beyond what was sent.
  bool credit(uint64_t consumed) noexcept;
  // UCX is done with one operation on a buffer.
  static void on_done(OutBuffer& buffer) noexcept;
  bool is_open() const noexcept { return max_length_ != 0; }
  size_t in_flight() const noexcept { return in_flight_; }

 protected:
  std::byte* make_room(size_t length) noexcept override;
  void attend() noexcept override;

  // Of how many bytes, at most, the frames may be that follow position() without a pad.
  virtual size_t contiguous() const noexcept { return SIZE_MAX; }
  // Tells the peer to skip `stride` bytes at position(), where a frame does not fit.
  virtual void transmit_pad(uint64_t stride) noexcept { (void)stride; }
  // Sends `size` bytes at the buffer's base(); counts in buffer.operations what still reads it. Failures are the
  // connection's business: the bytes are gone either way.
  virtual void transmit(OutBuffer& buffer, size_t size) noexcept = 0;
  // What was handed to UCX, in bytes of frames; during transmit(), this message included.
  uint64_t sent() const noexcept { return sent_; }
  uint64_t position() const noexcept {
    return sent_ + (buffer_ == nullptr ? 0 : static_cast<uint64_t>(cursor_ - buffer_->base()));
  }

 private:
  static constexpr uint32_t always = 1;

  bool has_unsent() const noexcept { return buffer_ != nullptr && cursor_ != buffer_->base(); }
  void send() noexcept;
  bool next_buffer() noexcept;
  uint64_t room() const noexcept;
  bool turn_lap() noexcept;
  void set_end() noexcept;

  FlushList& list_;
  OutBuffer* buffer_ = nullptr;  // being filled
  uint64_t sent_in_turn_ = 0;    // when a frame left at once last
  uint32_t in_flight_ = 0;       // buffers that UCX reads
  uint64_t sent_ = 0;
  uint64_t credited_ = 0;  // bytes of frames taken by the peer
  uint64_t window_ = 0;
  size_t batch_bytes_ = 0;
  size_t max_buffers_ = 0;
  std::vector<std::unique_ptr<OutBuffer>> buffers_;
  std::vector<OutBuffer*> free_;
};

}  // namespace tc::transport
