// SPDX-License-Identifier: Apache-2.0
//
// Codes in the order of their last use, without any work on the way of a call: the executor only writes
// Code::last_used. The queue sorts by what it last saw there, which is never later than the truth; so when the code
// at its head was not used since, no other was used earlier.
//
// Thread: the node's.
#pragma once

#include <cstdint>
#include <set>
#include <utility>

namespace tc::target {

class StoredCode;

class EvictionQueue {
 public:
  void add(StoredCode& code);
  void remove(StoredCode& code) noexcept;
  // The code used longest ago that is not running and is not `spared`; null when there is none.
  StoredCode* least_recent(const StoredCode* spared);
  // The latest use that the queue knows of.
  uint64_t newest() const noexcept { return queue_.empty() ? 0 : queue_.rbegin()->first; }

 private:
  std::set<std::pair<uint64_t, StoredCode*>> queue_;
};

}  // namespace tc::target
