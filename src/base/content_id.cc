// SPDX-License-Identifier: Apache-2.0
#include "base/content_id.h"

#include <sodium.h>

namespace tc {

ContentId ContentId::of(ByteView data) noexcept {
  ContentId id;
  crypto_hash_sha256(reinterpret_cast<unsigned char*>(id.bytes.data()),
                     reinterpret_cast<const unsigned char*>(data.data()), data.size());
  return id;
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
