// SPDX-License-Identifier: Apache-2.0
//
// The return address of a forwarded call. It stands behind the call header, in each frame that carries the call.
//
// Thread: any, one at a time for one object.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <string>

#include "base/bytes.h"
#include "base/result.h"

namespace tc::wire {

// Names the caller of a call that came from another node than the peer that sent the frame. Padded to a multiple of
// 16 bytes.
struct ReturnAddress {
  uint64_t instance = 0;  // of the caller's node
  uint32_t node_id = 0;
  std::string address;  // where it listens, "host:port"; cut to 255 bytes
};
inline constexpr size_t max_return_address_bytes = 272;  // 8 + 4 + 1 + 255, padded
Bytes encode_return_address(const ReturnAddress& return_address);
// `size` receives the bytes taken, padding included.
Result<ReturnAddress> decode_return_address(ByteView body, size_t& size);

// A return address and its bytes in a frame. All calls of one caller bring the same bytes. So reading the next one only
// compares them, and forwarding only copies them. It allocates only where std::string allocates for the address.
class PackedReturnAddress {
 public:
  PackedReturnAddress() noexcept {}  // empty: it has no bytes
  explicit PackedReturnAddress(ReturnAddress return_address) noexcept;

  const ReturnAddress& value() const noexcept { return value_; }
  ByteView bytes() const noexcept { return {bytes_.data(), size_}; }

  // Reads the return address at the start of `body`, which may be memory that its sender still writes to. Returns the
  // bytes taken, padding included. TC_ERR_MALFORMED when there is none; then this object does not change.
  Result<size_t> take(ByteView body) {
    const bool is_same = size_ != 0 && body.size() >= size_ && std::memcmp(body.data(), bytes_.data(), size_) == 0;
    return is_same ? size_ : take_another(body);
  }

 private:
  Result<size_t> take_another(ByteView body);

  ReturnAddress value_;
  size_t size_ = 0;
  std::array<std::byte, max_return_address_bytes> bytes_;  // `size_` of them
};

}  // namespace tc::wire
