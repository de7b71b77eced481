// SPDX-License-Identifier: Apache-2.0
//
// How long to wait for a peer to take what it was sent before the end: as long as it takes something within each second,
// and ten seconds at most. So a slow peer gets everything, and one that has stopped holds nobody up.
//
// Thread: any; one object is used by one thread.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/result.h"

namespace tc::transport {

class ClosingTime {
 public:
  static constexpr uint64_t idle_ns = 1'000'000'000, longest_ns = 10 * idle_ns;

  ClosingTime() = default;
  // `left`: how much the peer has not taken yet.
  ClosingTime(uint64_t now, size_t left) noexcept : left_(left), end_ns_(now + idle_ns), limit_ns_(now + longest_ns) {}

  // Is it over? `count_left` is asked at the end of a second only.
  template <class CountLeft>
  bool is_over(uint64_t now, CountLeft&& count_left) noexcept {
    if (now < end_ns_) return false;
    const size_t left = count_left();
    if (left >= left_ || now >= limit_ns_) return true;
    left_ = left;
    end_ns_ = std::min(now + idle_ns, limit_ns_);
    return false;
  }
  // When to ask again.
  uint64_t end_ns() const noexcept { return end_ns_; }

 private:
  size_t left_ = 0;
  uint64_t end_ns_ = 0, limit_ns_ = 0;
};

// For Events::on_warning(), when it is over before the peer has taken everything.
inline std::string lost_bytes_warning(size_t bytes, const std::string& peer) {
  return fmt::format("{} bytes of messages to {} may be lost: it had not read them when the connection ended", bytes,
                     peer);
}

}  // namespace tc::transport
