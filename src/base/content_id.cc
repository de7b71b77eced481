// SPDX-License-Identifier: Apache-2.0
#include "base/content_id.h"

#include "base/sha256.h"

namespace tc {

ContentId ContentId::of(ByteView data) noexcept { return {sha256(data)}; }

std::pair<ContentId, ContentId> ContentId::of_both(ByteView a, ByteView b) noexcept {
  const auto [of_a, of_b] = sha256_pair(a, b);
  return {ContentId{of_a}, ContentId{of_b}};
}

ContentId ContentId::from(ByteView data) noexcept {
  ContentId id;
  if (data.size() == id.bytes.size()) std::memcpy(id.bytes.data(), data.data(), data.size());
  return id;
}

std::string ContentId::hex() const {
  std::string text;
  text.reserve(bytes.size() * 2);
  for (const auto byte : bytes) text += fmt::format("{:02x}", std::to_integer<unsigned>(byte));
  return text;
}

}  // namespace tc
