// SPDX-License-Identifier: Apache-2.0
//
// Frames that leave in whole messages (active messages, puts, the loopback). Frames are written into a batch;
// the first one after a progress() leaves at once, so that a lone message waits for nobody, and those behind it
// are coalesced until the batch is full, flush(), or the next progress().
//
// Flow control: at most `window` bytes of frames are on their way without the peer's credit.
// Thread: the node's.
#pragma once

#include <algorithm>
#include <memory>
#include <vector>

#include "transport/stream.h"

namespace tc::transport {

class BatchOut;

// One batch being filled or on its way. Frames begin at 8 modulo 16.
struct OutBuffer {
  static constexpr size_t more_bytes = 32;  // of memory than of frames

  explicit OutBuffer(size_t bytes);                       // may throw std::bad_alloc
  OutBuffer(std::byte* borrowed, size_t bytes) noexcept;  // at a multiple of 64
  ~OutBuffer();
  OutBuffer(const OutBuffer&) = delete;
  OutBuffer& operator=(const OutBuffer&) = delete;
  std::byte* base() const noexcept { return memory + wire::header_bytes; }

  std::byte* const memory;
  const size_t bytes;         // frames it holds
  unsigned operations = 0;    // of the wire that still read it
  BatchOut* owner = nullptr;  // null once the stream is gone while the wire still reads the buffer
  const bool is_borrowed;     // so whoever is done with it does not delete it
};

// What the streams of a transport share: which of them sent something since the last progress(), which flushes them and
// makes them fresh again; and memory for a frame that leaves alone. Of the streams each has its own, all of it cold with
// more nodes than cores.
class FlushList {
  // Of a frame that leaves alone: as long as what runs at once at the other end.
  static constexpr size_t lone_bytes = wire::stride(most_lone_bytes);

 public:
  explicit FlushList(Pulse& pulse) noexcept : pulse_(&pulse) {}
  void add(BatchOut& stream) {
    streams_.push_back(&stream);
    pulse_->urgent = pulse_->due = true;
  }
  const Pulse& pulse() const noexcept { return *pulse_; }
  void remove(const BatchOut& stream) noexcept {
    std::erase(streams_, &stream);
    if (lone_.owner == &stream) lone_.owner = nullptr;
  }
  bool empty() const noexcept { return streams_.empty(); }
  // Returns how many streams had something to do.
  unsigned flush_all() noexcept;

  // Null while the wire reads it.
  OutBuffer* lone() noexcept { return lone_.owner == nullptr && lone_.operations == 0 ? &lone_ : nullptr; }

 private:
  std::vector<BatchOut*> streams_;
  Pulse* pulse_;
  OutBuffer lone_{lone_memory_, lone_bytes};
  alignas(64) std::byte lone_memory_[lone_bytes + OutBuffer::more_bytes] = {};
};

class BatchOut : public OutStream {
 public:
  // What a frame that leaves alone touches of the stream, when the one before it left alone as well. Where that lies is
  // the owner's choice.
  struct Bypass {
    uint64_t sent = 0;  // bytes of frames handed to the wire
    // So many more may go past the stream, as nothing waits in it. It grants nothing meanwhile; who writes to it takes
    // this back.
    uint64_t room = 0;
    uint32_t turn = 0;  // when the last frame left alone: the low half of Pulse::turn

    // Has nothing left alone in this turn, so that the next frame leaves at once?
    bool is_fresh(const Pulse& pulse) const noexcept {
      return !pulse.gathering && static_cast<uint32_t>(pulse.turn) != turn;
    }
    // Lays out a frame that goes past the stream, and counts it as sent. Null: not now.
    [[gnu::always_inline]] OutBuffer* lay_out(FlushList& list, uint64_t header,
                                              std::initializer_list<ByteView> body) noexcept {
      const size_t stride = wire::stride(static_cast<size_t>(header >> 32));
      OutBuffer* const lone = list.lone();
      if (stride > room || !is_fresh(list.pulse()) || lone == nullptr || stride > lone->bytes) [[unlikely]]
        return nullptr;
      store_header(lone->base(), header);
      copy_pieces(lone->base() + wire::header_bytes, body);
      sent += stride;
      room -= stride;
      turn = static_cast<uint32_t>(list.pulse().turn);
      return lone;
    }
  };

  explicit BatchOut(FlushList& list) : BatchOut(list, own_bypass_) {}
  // `bypass` must outlive the stream.
  BatchOut(FlushList& list, Bypass& bypass);
  ~BatchOut() override;

  // Frames may be reserved from now on. `batch_bytes` and `window_bytes` are both sides' smaller wish; frames are
  // at most half of the window, so that a long one need not wait until all before it was credited.
  void open(size_t batch_bytes, size_t window_bytes);
  // Nothing is granted any more; what was committed and not sent is dropped.
  void shut() noexcept;
  // The same, and `list` may be destroyed.
  void leave() noexcept {
    shut();
    list_->remove(*this);
    list_ = nullptr;
  }
  bool is_open() const noexcept { return open_; }

  bool put_alone(uint64_t header, std::initializer_list<ByteView> body) noexcept override;
  void flush() noexcept override;
  // Flushes unless the wire is behind: then frames are better kept together. False: call again.
  bool flush_unless_congested() noexcept;
  bool credit(uint64_t consumed) noexcept override;
  // Fresh again: the next frame leaves at once.
  void rearm() noexcept { attention_word_ = open_ ? 1 : 0; }
  // The wire reads the buffer for frames that leave alone until give_back().
  void keep_lone(OutBuffer& lone) noexcept {
    lone.owner = this;
    ++in_flight_;
  }
  // The wire is done with a buffer that transmit() or keep_lone() kept.
  void give_back(OutBuffer& buffer) noexcept;
  bool has_unsent() const noexcept { return buffer_ != nullptr && cursor_ != buffer_->base(); }
  // Batches that the wire still reads.
  size_t in_flight() const noexcept { return in_flight_; }
  uint64_t position() const noexcept {
    return bypass_.sent + (buffer_ == nullptr ? 0 : static_cast<uint64_t>(cursor_ - buffer_->base()));
  }

 protected:
  std::byte* make_room(size_t length) noexcept override;
  void attend() noexcept override;
  FlushList& list() noexcept { return *list_; }
  // Of how many bytes, at most, the frames may be that follow position() without a pad.
  virtual size_t contiguous() const noexcept { return SIZE_MAX; }
  // Tells the wire to skip `stride` bytes at position(), where a frame does not fit.
  virtual void transmit_pad(uint64_t stride) noexcept { (void)stride; }
  // What was handed to the wire, in bytes of frames; during transmit(), this batch included.
  uint64_t sent() const noexcept { return bypass_.sent; }
  // Sends `size` bytes of the buffer, which begin at `first`: its base(), told so that it need not be touched. True: the
  // buffer is free again. False: the wire reads it until give_back(). Failures are the connection's business; the bytes are
  // gone either way.
  virtual bool transmit(OutBuffer& buffer, std::byte* first, size_t size) noexcept = 0;

 private:
  bool next_buffer() noexcept;
  void fill(OutBuffer& buffer) noexcept;
  uint64_t room() const noexcept { return window_ - std::min(window_, position() - credited_); }
  bool turn_lap() noexcept;
  void set_end() noexcept;

  Bypass own_bypass_;
  Bypass& bypass_;
  FlushList* list_;
  OutBuffer* buffer_ = nullptr;  // being filled
  uint32_t attention_word_ = 0;
  bool open_ = false;
  bool in_messages_ = false;  // batches leave as they are, whatever lies behind them
  uint32_t in_flight_ = 0;    // buffers that the wire reads
  uint64_t credited_ = 0;     // bytes of frames taken by the peer
  uint64_t window_ = 0;
  size_t batch_bytes_ = 0;
  size_t max_buffers_ = 0;
  std::vector<std::unique_ptr<OutBuffer>> buffers_;
  std::vector<OutBuffer*> free_;
};

}  // namespace tc::transport
