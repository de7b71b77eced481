// SPDX-License-Identifier: Apache-2.0
//
// How long to wait before one connects again to a node that had no room. The pauses are random, so that peers that were
// refused together do not come back together, and grow, so that they do not become the flood that they wait for.
//
// Thread: any.
#pragma once

#include <algorithm>
#include <cstdint>

namespace tc::node {

class BusyRetries {
 public:
  static constexpr uint64_t first_ns = 10'000'000, most_ns = 200'000'000;

  // `random`: any number, which makes the choice.
  uint64_t next_pause_ns(uint64_t random) noexcept {
    const uint64_t most = longest_ns_;
    longest_ns_ = std::min(longest_ns_ * 2, most_ns);
    return random % most + 1;
  }

 private:
  uint64_t longest_ns_ = first_ns;
};

}  // namespace tc::node
