// SPDX-License-Identifier: Apache-2.0
#include "base/bytes.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace tc {

static_assert(std::endian::native == std::endian::little, "wire numbers are little-endian and copied as they are");

size_t size_of(std::span<const ByteView> parts) noexcept {
  size_t size = 0;
  for (const auto part : parts) size += part.size();
  return size;
}

void gather(std::byte* to, std::span<const ByteView> parts, size_t from, size_t length) noexcept {
  for (const auto part : parts) {
    if (from >= part.size()) {
      from -= part.size();
      continue;
    }
    const size_t here = std::min(length, part.size() - from);
    std::memcpy(to, part.data() + from, here);
    to += here;
    length -= here;
    from = 0;
    if (length == 0) return;
  }
}

template <class T>
T Reader::number() noexcept {
  T value = 0;
  if (const auto field = bytes(sizeof(T)); field.size() == sizeof(T)) std::memcpy(&value, field.data(), sizeof(T));
  return value;
}

uint8_t Reader::u8() noexcept { return number<uint8_t>(); }
uint16_t Reader::u16() noexcept { return number<uint16_t>(); }
uint32_t Reader::u32() noexcept { return number<uint32_t>(); }
uint64_t Reader::u64() noexcept { return number<uint64_t>(); }

ByteView Reader::bytes(size_t size) noexcept {
  if (!ok_) return {};
  if (size > remaining()) {
    ok_ = false;
    wanted_ = size;
    return {};
  }
  const auto field = bytes_.subspan(position_, size);
  position_ += size;
  return field;
}

std::string_view Reader::str8() noexcept { return as_text(bytes(u8())); }
std::string_view Reader::str16() noexcept { return as_text(bytes(u16())); }

void Reader::refuse() noexcept {
  if (ok_) wanted_ = 0;
  ok_ = false;
}

Status Reader::finish(std::string_view what) const {
  if (ok_) return {};
  if (wanted_ == 0) return fail(TC_ERR_MALFORMED, "{}: value before byte {} is not allowed there", what, position_);
  return fail(TC_ERR_MALFORMED, "{}: {} bytes wanted at byte {} when only {} are left", what, wanted_, position_,
              remaining());
}

Status Reader::finish_exactly(std::string_view what) const {
  TC_CHECK(finish(what));
  if (remaining() != 0)
    return fail(TC_ERR_MALFORMED, "{}: {} bytes long when its content ends at byte {}", what, bytes_.size(), position_);
  return {};
}

namespace {
template <class T>
void append(Bytes& out, T value) {
  const auto* first = reinterpret_cast<const std::byte*>(&value);
  out.insert(out.end(), first, first + sizeof(T));
}
}  // namespace

Writer& Writer::u8(uint8_t value) { return append(out_, value), *this; }
Writer& Writer::u16(uint16_t value) { return append(out_, value), *this; }
Writer& Writer::u32(uint32_t value) { return append(out_, value), *this; }
Writer& Writer::u64(uint64_t value) { return append(out_, value), *this; }

Writer& Writer::bytes(ByteView bytes) {
  out_.insert(out_.end(), bytes.begin(), bytes.end());
  return *this;
}

Writer& Writer::str8(std::string_view text) {
  const auto size = std::min<size_t>(text.size(), UINT8_MAX);
  return u8(static_cast<uint8_t>(size)).bytes(as_bytes(text.substr(0, size)));
}

Writer& Writer::str16(std::string_view text) {
  const auto size = std::min<size_t>(text.size(), UINT16_MAX);
  return u16(static_cast<uint16_t>(size)).bytes(as_bytes(text.substr(0, size)));
}

Writer& Writer::align(size_t alignment) {
  out_.resize((out_.size() + alignment - 1) / alignment * alignment);
  return *this;
}

std::byte* aligned_copy(Bytes& memory, ByteView bytes, size_t alignment) {
  memory.resize(bytes.size() + alignment);
  const auto over = reinterpret_cast<uintptr_t>(memory.data()) % alignment;
  std::byte* const aligned = memory.data() + (alignment - over) % alignment;
  if (!bytes.empty()) std::memcpy(aligned, bytes.data(), bytes.size());
  return aligned;
}

}  // namespace tc
