// SPDX-License-Identifier: Apache-2.0
#include "trust/base64.h"

#include <sodium.h>

#include <algorithm>

namespace tc::trust {

namespace {

constexpr int variant = sodium_base64_VARIANT_URLSAFE_NO_PADDING;

}  // namespace

std::string to_base64(ByteView bytes) {
  std::string text(sodium_base64_encoded_len(bytes.size(), variant), '\0');
  sodium_bin2base64(text.data(), text.size(), reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(),
                    variant);
  text.pop_back();  // the zero behind it
  return text;
}

bool from_base64(std::string_view text, std::span<std::byte> bytes) noexcept {
  // libsodium 1.0.18 takes some bytes from 0x80 on for letters of the alphabet.
  if (!std::ranges::all_of(text, [](char letter) { return static_cast<unsigned char>(letter) < 0x80; })) return false;
  size_t size = 0;
  const char* end = nullptr;
  return sodium_base642bin(reinterpret_cast<unsigned char*>(bytes.data()), bytes.size(), text.data(), text.size(),
                           nullptr, &size, &end, variant) == 0 &&
         size == bytes.size() && end == text.data() + text.size();
}

}  // namespace tc::trust
