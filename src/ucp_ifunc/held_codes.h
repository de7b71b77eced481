// SPDX-License-Identifier: Apache-2.0
//
// The code that a context holds, by the short content id that frames carry: the hot path of a poll.
//
// Threads: find() any, without a lock; add() one at a time. Nothing is removed before the whole table goes.
#pragma once

#include <array>
#include <atomic>
#include <deque>

#include "target/code.h"
#include "ucp_ifunc/slot_frame.h"

namespace tc::ucp {

class HeldCodes {
 public:
  target::Code* find(const slot::ShortId& id) const noexcept {
    const Entry* entry = buckets_[id[0] % buckets_.size()].load(std::memory_order_acquire);
    while (entry != nullptr && entry->id != id) entry = entry->next;
    return entry != nullptr ? entry->code : nullptr;
  }

  void add(target::Code& code) {
    const auto id = slot::short_id(code.id());
    auto& bucket = buckets_[id[0] % buckets_.size()];
    entries_.push_back({id, &code, bucket.load(std::memory_order_relaxed)});
    bucket.store(&entries_.back(), std::memory_order_release);
  }

 private:
  struct Entry {
    slot::ShortId id;
    target::Code* code;
    const Entry* next;
  };
  std::array<std::atomic<const Entry*>, 1024> buckets_{};
  std::deque<Entry> entries_;  // stay where they are
};

}  // namespace tc::ucp
