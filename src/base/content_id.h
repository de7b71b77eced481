// SPDX-License-Identifier: Apache-2.0
//
// The SHA-256 of some bytes. It names code (docs/wire-format.md, "content id"). A human name is only a label.
//
// Threads: any.
#pragma once

#include <array>
#include <compare>
#include <cstring>
#include <functional>
#include <utility>

#include "base/bytes.h"
#include "base/sha256.h"

namespace tc {

struct ContentId {
  std::array<std::byte, 32> bytes{};

  static ContentId of(ByteView data) noexcept { return {sha256(data)}; }
  // The ids of both, faster than one after the other.
  static std::pair<ContentId, ContentId> of_both(ByteView a, ByteView b) noexcept {
    const auto [of_a, of_b] = sha256_pair(a, b);
    return {ContentId{of_a}, ContentId{of_b}};
  }
  // Takes the 32 bytes of an id from a frame or bundle. All zero when `data` has another size.
  static ContentId from(ByteView data) noexcept {
    ContentId id;
    if (data.size() == id.bytes.size()) std::memcpy(id.bytes.data(), data.data(), data.size());
    return id;
  }
  // 64 hexadecimal digits, and the first 12 of them for messages.
  std::string hex() const {
    std::string text;
    text.reserve(bytes.size() * 2);
    for (const auto byte : bytes) text += fmt::format("{:02x}", std::to_integer<unsigned>(byte));
    return text;
  }
  std::string short_hex() const { return hex().substr(0, 12); }

  // The default comparison goes byte by byte: 250 instructions, where this takes ten.
  bool operator==(const ContentId& other) const noexcept {
    return std::memcmp(bytes.data(), other.bytes.data(), bytes.size()) == 0;
  }
  auto operator<=>(const ContentId&) const = default;
};

}  // namespace tc

template <>
struct std::hash<tc::ContentId> {
  size_t operator()(const tc::ContentId& id) const noexcept {
    size_t value;
    std::memcpy(&value, id.bytes.data(), sizeof value);
    return value;
  }
};
