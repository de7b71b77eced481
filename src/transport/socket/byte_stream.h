// SPDX-License-Identifier: Apache-2.0
//
// Frames as a stream of bytes: a Channel carries the bytes, ByteIn and ByteOut make frames of them.
//
// Thread: the node's.
#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <span>

#include "base/bytes.h"
#include "transport/stream.h"
#include "wire/frame.h"

namespace tc::transport {

// An ordered, reliable stream of bytes to a peer and back, on which ByteIn and ByteOut are built: a TCP socket, UCX, or
// a network that a test simulates.
//
// Thread: the node's. Neither call blocks.
class Channel {
 public:
  // Returns how many bytes it took; 0: none now. After an error it takes no more.
  virtual Result<size_t> send(ByteView bytes) = 0;
  // The same for bytes in several places, in one system call: only if can_gather().
  virtual bool can_gather() const noexcept { return false; }
  virtual Result<size_t> send_gathered(std::span<const ByteView> parts) { return send(parts.front()); }
  // Returns how many bytes came; 0: none now. TC_ERR_DISCONNECTED: no more will come.
  virtual Result<size_t> receive(std::span<std::byte> into) = 0;

 protected:
  ~Channel() = default;
};

// The longest frame of a stream of bytes, behind its header, and the size of pieces: both sides know it.
inline constexpr size_t byte_frame_length = 64 * 1024 - wire::header_bytes;

// Room for two of the longest frames: on the way in, one that is read and one that comes.
inline constexpr size_t byte_buffer_capacity = 2 * (byte_frame_length + wire::header_bytes);
// With the 8 bytes before the first frame, and a zero word behind the last one.
inline constexpr size_t byte_buffer_bytes = byte_buffer_capacity + 2 * wire::header_bytes;
inline constexpr std::align_val_t byte_buffer_alignment{64};

struct FreeByteBuffer {
  void operator()(std::byte* memory) const noexcept { ::operator delete[](memory, byte_buffer_alignment); }
};
// May throw std::bad_alloc.
inline std::unique_ptr<std::byte, FreeByteBuffer> new_byte_buffer() {
  return std::unique_ptr<std::byte, FreeByteBuffer>(new (byte_buffer_alignment) std::byte[byte_buffer_bytes]);
}

// Frames that come as a stream of bytes. They are received into private memory and run where they lie: nothing is
// copied, and the peer cannot change them any more.
//
// The first byte of the stream lies at an address 8 modulo 16, and frames are multiples of 16 bytes. So every header
// lies at such an address, too. A frame of which only a part has come does not fit() and waits for the rest.
class ByteIn final : public InStream {
 public:
  ByteIn() = default;

  // `least_room`: with less, the channel is not asked for bytes. Half of the buffer is always free for that. May throw
  // std::bad_alloc.
  void open(size_t least_room = 4096);
  // Nothing more is received. What has come can still be read.
  void shut() noexcept { is_shut_ = true; }

  // Receives once from the channel, as much as there is room for. Returns how many bytes; the channel's errors.
  Result<size_t> fill(Channel& channel);
  // Is there room for more bytes, apart from those that were received and not read?
  bool has_room() const noexcept;

  bool refill() noexcept override;
  void release() noexcept override;
  uint64_t received() const noexcept { return received_; }  // bytes so far

 private:
  void make_room() noexcept;

  std::unique_ptr<std::byte, FreeByteBuffer> memory_;
  std::byte* base_ = nullptr;    // where the first frame lies
  std::byte* filled_ = nullptr;  // behind the last byte that came; a zero word stands there
  size_t least_room_ = 0;
  uint64_t received_ = 0;
  bool is_shut_ = false;
};

// Frames that are sent as a stream of bytes. The frames of one poll are gathered in a buffer and sent by one system
// call: at the end of the poll, when the buffer is full, or with flush(). The first frame that the application sends
// after a poll is sent at once.
class ByteOut final : public OutStream {
 public:
  class Owner {
   public:
    // The channel did not take everything: call on_channel_room() once it takes more.
    virtual void on_channel_full() noexcept = 0;
    // The channel has failed, and discard() was called. Called in the middle of a send.
    virtual void on_channel_lost(Error why) noexcept = 0;

   protected:
    ~Owner() = default;
  };

  ByteOut(FlushList& list, Owner& owner) noexcept : list_(list), owner_(owner) { slow_commit_flag_ = &always; }
  ~ByteOut() override { list_.remove(*this); }

  // `channel` must stay until shut(). May throw std::bad_alloc.
  void open(Channel& channel);
  // Grants and sends nothing from now on.
  void shut() noexcept;
  size_t put_gathered(std::span<const GatheredFrame> frames) noexcept override;
  void flush() noexcept override;
  void on_channel_room() noexcept;
  // The peer reads no more: what is committed from now on is thrown away with each flush(). So the owner goes on as before
  // until the connection is lost, and reads what the peer sent before. An owner that sends and never polls finds
  // no room in the end.
  void discard() noexcept;
  // What was committed before shut() and was not sent.
  ByteView unsent() const noexcept { return unsent_; }
  // Bytes that the channel has taken so far, and those that wait for it.
  uint64_t sent() const noexcept { return sent_bytes_; }
  size_t waiting() const noexcept { return is_open() ? static_cast<size_t>(cursor_ - sent_) : 0; }

 private:
  static constexpr uint32_t always = 1;

  std::byte* make_room(size_t length) noexcept override;
  void slow_commit() noexcept override;
  void send() noexcept;
  void lose_channel(Error why) noexcept;
  size_t keep_rest(std::span<const GatheredFrame> frames, size_t taken) noexcept;
  bool is_open() const noexcept { return max_length_ != 0; }

  FlushList& list_;
  Owner& owner_;
  Channel* channel_ = nullptr;
  std::unique_ptr<std::byte, FreeByteBuffer> memory_;
  std::byte* base_ = nullptr;  // where the first frame lies
  std::byte* sent_ = nullptr;  // the channel has taken everything before
  ByteView unsent_;
  uint64_t sent_bytes_ = 0;
  uint64_t sent_in_poll_ = 0;  // the last poll that a frame was sent in at once
  bool is_full_ = false;       // the channel takes nothing now: wait for on_channel_room()
  bool discards_ = false;
};

}  // namespace tc::transport
