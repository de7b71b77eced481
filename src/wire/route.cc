// SPDX-License-Identifier: Apache-2.0
#include "wire/route.h"

#include <algorithm>
#include <utility>

#include "wire/frame.h"
#include "wire/text.h"

namespace tc::wire {

PackedRoute::PackedRoute(Route route) noexcept : route_(std::move(route)) {
  constexpr size_t head_bytes = sizeof route_.instance + sizeof route_.node_id + 1;
  const auto address = static_cast<uint8_t>(std::min<size_t>(route_.address.size(), UINT8_MAX));
  size_ = (head_bytes + address + alignment - 1) & ~(alignment - 1);
  std::memset(bytes_.data(), 0, size_);
  std::byte* const at = bytes_.data();
  std::memcpy(at, &route_.instance, sizeof route_.instance);
  std::memcpy(at + sizeof route_.instance, &route_.node_id, sizeof route_.node_id);
  std::memcpy(at + head_bytes - 1, &address, sizeof address);
  std::memcpy(at + head_bytes, route_.address.data(), address);
}

Result<size_t> PackedRoute::take_another(ByteView body) {
  std::array<std::byte, max_route_bytes> copy;  // checked and kept is what was read once
  const auto copied = std::min(body.size(), copy.size());
  std::memcpy(copy.data(), body.data(), copied);
  size_t size = 0;
  TC_ASSIGN(auto route, decode_route({copy.data(), copied}, size));
  *this = PackedRoute(std::move(route));
  return size;
}

Bytes encode_route(const Route& route) {
  const PackedRoute packed(route);
  return {packed.bytes().begin(), packed.bytes().end()};
}

Result<Route> decode_route(ByteView body, size_t& size) {
  Reader in(body);
  Route route;
  route.instance = in.u64();
  route.node_id = in.u32();
  route.address = in.str8();
  in.skip((alignment - in.position() % alignment) % alignment);
  TC_CHECK(in.finish("return address of a call"));
  if (!visible(route.address)) return fail(TC_ERR_MALFORMED, "return address of a call: its address is not printable");
  size = in.position();
  return route;
}

}  // namespace tc::wire
