// SPDX-License-Identifier: Apache-2.0
#include "wire/return_address.h"

#include <algorithm>
#include <utility>

#include "wire/frame.h"
#include "wire/text.h"

namespace tc::wire {

PackedReturnAddress::PackedReturnAddress(ReturnAddress return_address) noexcept : value_(std::move(return_address)) {
  constexpr size_t head_bytes = sizeof value_.instance + sizeof value_.node_id + 1;
  const auto address = static_cast<uint8_t>(std::min<size_t>(value_.address.size(), UINT8_MAX));
  size_ = (head_bytes + address + alignment - 1) & ~(alignment - 1);
  std::memset(bytes_.data(), 0, size_);
  std::byte* const at = bytes_.data();
  std::memcpy(at, &value_.instance, sizeof value_.instance);
  std::memcpy(at + sizeof value_.instance, &value_.node_id, sizeof value_.node_id);
  std::memcpy(at + head_bytes - 1, &address, sizeof address);
  std::memcpy(at + head_bytes, value_.address.data(), address);
}

Result<size_t> PackedReturnAddress::take_another(ByteView body) {
  std::array<std::byte, max_return_address_bytes> copy;  // checked and kept is what was read once
  const auto copied = std::min(body.size(), copy.size());
  std::memcpy(copy.data(), body.data(), copied);
  size_t size = 0;
  TC_ASSIGN(auto return_address, decode_return_address({copy.data(), copied}, size));
  *this = PackedReturnAddress(std::move(return_address));
  return size;
}

Bytes encode_return_address(const ReturnAddress& return_address) {
  const PackedReturnAddress packed(return_address);
  return {packed.bytes().begin(), packed.bytes().end()};
}

Result<ReturnAddress> decode_return_address(ByteView body, size_t& size) {
  Reader in(body);
  ReturnAddress return_address;
  return_address.instance = in.u64();
  return_address.node_id = in.u32();
  return_address.address = in.str8();
  in.skip((alignment - in.position() % alignment) % alignment);
  TC_CHECK(in.finish("return address of a call"));
  if (!visible(return_address.address))
    return fail(TC_ERR_MALFORMED, "return address of a call: its address is not printable");
  size = in.position();
  return return_address;
}

}  // namespace tc::wire
