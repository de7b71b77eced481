// SPDX-License-Identifier: Apache-2.0
//
// The chain of a call: the keys of the peers on whose behalf it is made (docs/security.md). It names each peer on the
// call's way that a node did not trust fully. A node gives the call only rights that each of these keys has. A code
// number of a link stands for code together with a chain. So the keys travel once for each link, with the code.
//
// Threads: any; plain values.
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
  using Key = std::array<std::byte, 32>;  // Ed25519; src/trust knows its rights
  static constexpr size_t most = 8;       // a frame with more is malformed

  Chain() = default;  // empty: the peer calls for itself
  explicit Chain(std::vector<Key> keys) : keys_(std::move(keys)) {
    if (!keys_.empty()) mask_ = ContentId::of(std::as_bytes(std::span(keys_)));
  }

  const std::vector<Key>& keys() const noexcept { return keys_; }
  bool empty() const noexcept { return keys_.empty(); }
  // The key in tables for this code when it is called with this chain. With an empty chain, it is the code's id.
  ContentId table_key(const ContentId& code) const noexcept {
    ContentId key = code;
    for (size_t i = 0; i < key.bytes.size(); ++i) key.bytes[i] ^= mask_.bytes[i];
    return key;
  }
  bool operator==(const Chain& other) const noexcept { return keys_ == other.keys_; }

 private:
  std::vector<Key> keys_;
  ContentId mask_;  // the SHA-256 of the keys; zero for an empty chain
};

// Calls with the same rights share a chain. Null: an empty chain.
using SharedChain = std::shared_ptr<const Chain>;

}  // namespace tc::wire
