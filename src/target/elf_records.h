// SPDX-License-Identifier: Apache-2.0
//
// Copies a structure of <elf.h> out of bytes, or says that it is not wholly there. Never a cast: the bytes may be
// anywhere and unaligned.
//
// Thread: any.
#pragma once

#include <cstring>
#include <optional>
#include <type_traits>

#include "base/bytes.h"

namespace tc::target {

template <class T>
std::optional<T> record_at(ByteView bytes, uint64_t offset) noexcept {
  static_assert(std::is_trivially_copyable_v<T>);
  if (offset > bytes.size() || sizeof(T) > bytes.size() - offset) return std::nullopt;
  T record;
  std::memcpy(&record, bytes.data() + offset, sizeof(T));
  return record;
}

}  // namespace tc::target
