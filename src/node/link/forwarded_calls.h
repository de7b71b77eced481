// SPDX-License-Identifier: Apache-2.0
//
// The calls of a link that went on to other nodes, by their tokens and callers: an answer that may not go straight to its caller
// goes back by the links that the call came by. The last 1024 of a link are known; answers to older ones are lost.
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

  struct Call {
    uint64_t token = 0;     // 0: none
    uint64_t instance = 0;  // of the node that made it
    bool operator==(const Call&) const = default;
  };

  // The first call allocates. May throw std::bad_alloc.
  void add(const Call& call) {
    if (calls_.empty()) calls_.resize(most);
    calls_[next_++ % most] = call;
  }
  // Did that call go on? Each is taken once, so that no answer goes in circles.
  bool take(const Call& call) noexcept {
    if (call.token == 0) return false;
    const auto found = std::ranges::find(calls_, call);
    if (found == calls_.end()) return false;
    *found = {};
    return true;
  }

 private:
  std::vector<Call> calls_;
  size_t next_ = 0;
};

}  // namespace tc::node
