// SPDX-License-Identifier: Apache-2.0
//
// Frames that come as a stream of bytes. They are received into private memory at the place where they can run, and run
// there: nothing is copied, and the peer cannot change them any more.
//
// The first byte of the stream lies at an address 8 modulo 16, and frames are multiples of 16 bytes, so every header
// lies where it should. A frame of which only a part has come does not fit() and waits for the rest.
//
// Thread: the node's.
#pragma once

#include <memory>

#include "transport/socket/channel.h"
#include "transport/stream.h"

namespace tc::transport {

// The longest frame of a stream of bytes, behind its header, and how large frames are cut: both sides know it.
inline constexpr size_t byte_frame_length = 64 * 1024 - wire::header_bytes;

class ByteIn final : public InStream {
 public:
  ByteIn() = default;

  // May throw std::bad_alloc.
  void open();
  // Nothing more is received. What has come can still be read.
  void shut() noexcept { is_shut_ = true; }

  // Takes what the channel has, as far as there is room, in one call; how many bytes. The channel's errors.
  Result<size_t> fill(Channel& channel);
  // Is there memory for more bytes, once what can be read was read?
  bool has_room() const noexcept;

  bool refill() noexcept override;
  void release() noexcept override;

 private:
  struct Free {
    void operator()(std::byte* memory) const noexcept;
  };

  void make_room() noexcept;

  std::unique_ptr<std::byte, Free> memory_;
  std::byte* base_ = nullptr;    // where the first frame lies
  std::byte* filled_ = nullptr;  // behind the last byte that came; a zero word stands there
  bool is_shut_ = false;
};

}  // namespace tc::transport
