// SPDX-License-Identifier: Apache-2.0
//
// The calls of a link that went on to other nodes, by their tokens: an answer that may not go straight to its caller goes back
// by the links that the call came by. The last 1024 of a link are known; answers to older ones are lost.
//
// Thread: the node's.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace tc::node {

class ForwardedCalls {
 public:
  static constexpr size_t most = 1024;

  // The first call allocates. May throw std::bad_alloc.
  void add(uint64_t token) {
    if (tokens_.empty()) tokens_.resize(most);
    tokens_[next_++ % most] = token;
  }
  // Did that call go on? Each is taken once, so that no answer goes in circles.
  bool take(uint64_t token) noexcept {
    if (token == 0) return false;
    const auto found = std::ranges::find(tokens_, token);
    if (found == tokens_.end()) return false;
    *found = 0;
    return true;
  }

 private:
  std::vector<uint64_t> tokens_;  // 0: none
  size_t next_ = 0;
};

}  // namespace tc::node
