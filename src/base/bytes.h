// SPDX-License-Identifier: Apache-2.0
//
// Reading and writing bytes that cross a process boundary. Little-endian, unaligned, bounds-checked.
//
// A Reader never reads past its span. The first read that would do so makes it fail for good, and every later read
// returns zero or nothing. So a decoder reads straight on and calls finish() once at the end, which returns the error.
// This stops attacks by wrong lengths and counts.
//
// Threads: any; one thread uses an object.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace tc {

using Bytes = std::vector<std::byte>;
using ByteView = std::span<const std::byte>;

inline ByteView as_bytes(std::string_view text) noexcept {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}
inline std::string_view as_text(ByteView bytes) noexcept {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Bytes that lie in several places.
size_t size_of(std::span<const ByteView> parts) noexcept;
// Copies `length` of them, from `from` on.
void gather(std::byte* to, std::span<const ByteView> parts, size_t from, size_t length) noexcept;

class Reader {
 public:
  // `bytes` must outlive the reader and every view it hands out.
  explicit Reader(ByteView bytes) noexcept : bytes_(bytes) {}

  uint8_t u8() noexcept;
  uint16_t u16() noexcept;
  uint32_t u32() noexcept;
  uint64_t u64() noexcept;
  // The next `size` bytes; empty when there are fewer.
  ByteView bytes(size_t size) noexcept;
  // A string behind its length of one byte. It may hold any byte value, also zero.
  std::string_view str8() noexcept;
  std::string_view str16() noexcept;
  // All bytes that are left.
  ByteView rest() noexcept { return bytes(remaining()); }
  void skip(size_t size) noexcept { (void)bytes(size); }

  size_t position() const noexcept { return position_; }
  size_t remaining() const noexcept { return bytes_.size() - position_; }
  bool ok() const noexcept { return ok_; }
  // Fails, because a decoder found a wrong value. The first failure counts.
  void refuse() noexcept;

  // TC_ERR_MALFORMED names `what`: a read went past the end.
  Status finish(std::string_view what) const;
  // The same. Bytes that are left over are an error, too.
  Status finish_exactly(std::string_view what) const;

 private:
  template <class T>
  T number() noexcept;

  ByteView bytes_;
  size_t position_ = 0;
  size_t wanted_ = 0;  // how many bytes the failing read asked for
  bool ok_ = true;
};

// Copies `bytes` to a multiple of `alignment` in `memory`, and makes `memory` long enough. The copy lives as long as
// `memory`. Throws std::bad_alloc.
std::byte* aligned_copy(Bytes& memory, ByteView bytes, size_t alignment);

class Writer {
 public:
  // Appends to `out`, which must outlive the writer.
  explicit Writer(Bytes& out) noexcept : out_(out) {}

  Writer& u8(uint8_t value);
  Writer& u16(uint16_t value);
  Writer& u32(uint32_t value);
  Writer& u64(uint64_t value);
  Writer& bytes(ByteView bytes);
  // Cuts the text to 255 (or 65535) bytes. Only labels and messages may be cut; check the length of all other text
  // first.
  Writer& str8(std::string_view text);
  Writer& str16(std::string_view text);
  // Zeroes up to the next multiple of `alignment`, counted from where `out` began.
  Writer& align(size_t alignment);
  size_t size() const noexcept { return out_.size(); }

 private:
  Bytes& out_;
};

}  // namespace tc
