// SPDX-License-Identifier: Apache-2.0
//
// The buffers of streams of bytes, and their common size.
//
// Thread: any.
#pragma once

#include <cstddef>
#include <memory>
#include <new>

#include "wire/frame.h"

namespace tc::transport {

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

}  // namespace tc::transport
