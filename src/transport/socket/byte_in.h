// SPDX-License-Identifier: Apache-2.0
//
// Frames that come as a stream of bytes. They are received into private memory and run where they lie: nothing is
// copied, and the peer cannot change them any more.
//
// The first byte of the stream lies at an address 8 modulo 16, and frames are multiples of 16 bytes. So every header
// lies at such an address, too. A frame of which only a part has come does not fit() and waits for the rest.
//
// Thread: the node's.
#pragma once

#include "transport/in_stream.h"
#include "transport/socket/byte_buffer.h"
#include "transport/socket/channel.h"

namespace tc::transport {

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

 private:
  void make_room() noexcept;

  std::unique_ptr<std::byte, FreeByteBuffer> memory_;
  std::byte* base_ = nullptr;    // where the first frame lies
  std::byte* filled_ = nullptr;  // behind the last byte that came; a zero word stands there
  size_t least_room_ = 0;
  bool is_shut_ = false;
};

}  // namespace tc::transport
