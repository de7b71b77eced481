// SPDX-License-Identifier: Apache-2.0
//
// The way home of a call that travels on: behind its ticket, in each frame that carries it.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <string>

#include "base/bytes.h"
#include "base/result.h"

namespace tc::wire {

// Who waits for the answer when that is not the peer that sent the frame. Padded to a multiple of 16 bytes.
struct Route {
  uint64_t instance = 0;  // epoch of the first sender's node
  uint32_t node_id = 0;
  std::string address;  // where it listens, "host:port"; cut to 255 bytes
};
inline constexpr size_t max_route_bytes = 272;  // 8 + 4 + 1 + 255, padded
Bytes encode_route(const Route& route);
// `size` receives the bytes taken, padding included.
Result<Route> decode_route(ByteView body, size_t& size);

// A route and its bytes in a frame. The calls of one asker all bring the same: to take the next one is to compare, and
// to pass it on is to copy. Allocates for addresses that std::string allocates for, and nothing besides.
class PackedRoute {
 public:
  PackedRoute() noexcept {}  // nobody's: it has no bytes
  explicit PackedRoute(Route route) noexcept;

  const Route& route() const noexcept { return route_; }
  ByteView bytes() const noexcept { return {bytes_.data(), size_}; }

  // Becomes the route in front of `body`, which may be memory that its sender still writes to. Returns the bytes taken,
  // padding included. TC_ERR_MALFORMED when there is none; then it stays what it was.
  Result<size_t> take(ByteView body) {
    const bool is_same = size_ != 0 && body.size() >= size_ && std::memcmp(body.data(), bytes_.data(), size_) == 0;
    return is_same ? size_ : take_another(body);
  }

 private:
  Result<size_t> take_another(ByteView body);

  Route route_;
  size_t size_ = 0;
  std::array<std::byte, max_route_bytes> bytes_;  // `size_` of them
};

}  // namespace tc::wire
