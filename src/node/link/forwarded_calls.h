// SPDX-License-Identifier: Apache-2.0
//
// The calls of a link that went on to other nodes, by their tokens and callers: an answer that may not go straight to its caller
// goes back by the links that the call came by. A call whose answer has no other way stays until the answer came, or its caller
// waits no longer. Of the others the last few thousand are known.
//
// Thread: the node's.
#pragma once

#include <algorithm>
#include <compare>
#include <cstdint>
#include <map>

#include "base/clock.h"

namespace tc::node {

class ForwardedCalls {
 public:
  // Of one link: what it can make the node keep.
  static constexpr size_t most = 16384;

  struct Call {
    uint64_t token = 0;     // 0: none
    uint64_t instance = 0;  // of the node that made it
    auto operator<=>(const Call&) const = default;
  };

  // `only_way`: the answer can come back by this link alone, and its caller waits for `deadline_ms` (0: for ever). False: there are
  // too many of these. May throw std::bad_alloc.
  bool add(const Call& call, bool only_way, uint32_t deadline_ms) {
    if (calls_.size() >= most) drop_old();
    if (calls_.size() >= most) return !only_way;
    calls_.emplace(call, Record{.number = ++last_, .until_ns = only_way ? end_of(deadline_ms) : 0});
    return true;
  }
  // Did that call go on? It is taken as often as it came by this link and went on, so that no answer goes in circles.
  bool take(const Call& call) noexcept {
    const auto found = call.token != 0 ? calls_.find(call) : calls_.end();
    if (found == calls_.end()) return false;
    calls_.erase(found);
    return true;
  }

 private:
  struct Record {
    uint64_t number = 0;    // grows with each call
    uint64_t until_ns = 0;  // not dropped before; 0: when it is old
  };

  // A caller with a later deadline, or without one, keeps its place for an hour.
  static uint64_t end_of(uint32_t deadline_ms) noexcept {
    constexpr uint32_t hour_ms = 3'600'000;
    return now_ns() + uint64_t{deadline_ms != 0 ? std::min(deadline_ms, hour_ms) : hour_ms} * 1'000'000;
  }

  // Where it frees little, it is not tried again at once: it looks at all of them.
  void drop_old() noexcept {
    constexpr uint64_t pause_ns = 100'000'000;
    const auto now = now_ns();
    if (now < next_drop_ns_) return;
    std::erase_if(calls_, [&](const auto& entry) {
      const auto& [number, until_ns] = entry.second;
      return until_ns != 0 ? until_ns < now : number + most / 2 <= last_;
    });
    if (calls_.size() > most - most / 4) next_drop_ns_ = now + pause_ns;
  }

  std::multimap<Call, Record> calls_;
  uint64_t last_ = 0;
  uint64_t next_drop_ns_ = 0;
};

}  // namespace tc::node
