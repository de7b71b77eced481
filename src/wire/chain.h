// SPDX-License-Identifier: Apache-2.0
//
// On whose behalf a call is made: the keys of all peers on its way that were not trusted fully where it entered
// (docs/security.md). A node grants such a call what it grants each of them. A code number of a link stands for code and
// for a chain, so the keys travel once a link, with the code.
//
// Thread: any; plain values.
#pragma once

#include <array>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/content_id.h"

namespace tc::wire {

class Chain {
 public:
  using Key = std::array<std::byte, 32>;  // Ed25519; src/trust knows what it may do
  static constexpr size_t most = 8;       // a frame with more is malformed

  Chain() = default;  // nobody: the peer calls for itself
  explicit Chain(std::vector<Key> keys) : keys_(std::move(keys)) {
    if (!keys_.empty()) mask_ = ContentId::of(std::as_bytes(std::span(keys_)));
  }

  const std::vector<Key>& keys() const noexcept { return keys_; }
  bool empty() const noexcept { return keys_.empty(); }
  // In tables: what stands for that code when it is called for this chain. For nobody: its id.
  ContentId name_of(const ContentId& code) const noexcept {
    ContentId name = code;
    for (size_t i = 0; i < name.bytes.size(); ++i) name.bytes[i] ^= mask_.bytes[i];
    return name;
  }
  bool operator==(const Chain& other) const noexcept { return keys_ == other.keys_; }

 private:
  std::vector<Key> keys_;
  ContentId mask_;  // the SHA-256 of the keys; zero for nobody
};

// Calls that are made with the same rights share one. Null: nobody.
using SharedChain = std::shared_ptr<const Chain>;

}  // namespace tc::wire
