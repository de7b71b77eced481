// SPDX-License-Identifier: Apache-2.0
//
// The header word of a frame in memory that two threads or processes share. It is written last and read first: a
// thread that loads a header sees the body that was stored before it.
//
// Thread: any.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace tc::transport {

inline uint64_t load_header(const std::byte* at) noexcept {
  return std::atomic_ref(*reinterpret_cast<uint64_t*>(const_cast<std::byte*>(at))).load(std::memory_order_acquire);
}
inline void store_header(std::byte* at, uint64_t word) noexcept {
  std::atomic_ref(*reinterpret_cast<uint64_t*>(at)).store(word, std::memory_order_release);
}

}  // namespace tc::transport
