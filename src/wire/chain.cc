// SPDX-License-Identifier: Apache-2.0
#include "wire/chain.h"

#include <span>
#include <utility>

namespace tc::wire {

Chain::Chain(std::vector<Key> keys) : keys_(std::move(keys)) {
  if (!keys_.empty()) mask_ = ContentId::of(std::as_bytes(std::span(keys_)));
}

ContentId Chain::name_of(const ContentId& code) const noexcept {
  ContentId name = code;
  for (size_t i = 0; i < name.bytes.size(); ++i) name.bytes[i] ^= mask_.bytes[i];
  return name;
}

}  // namespace tc::wire
