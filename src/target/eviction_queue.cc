// SPDX-License-Identifier: Apache-2.0
#include "target/eviction_queue.h"

#include "target/stored_code.h"

namespace tc::target {

void EvictionQueue::add(StoredCode& code) {
  code.queue_key = code.last_used;
  queue_.emplace(code.queue_key, &code);
}

void EvictionQueue::remove(StoredCode& code) noexcept { queue_.erase({code.queue_key, &code}); }

StoredCode* EvictionQueue::least_recent(const StoredCode* spared) {
  for (auto it = queue_.begin(); it != queue_.end();) {
    StoredCode* const code = it->second;
    if (code->last_used != it->first) {
      auto node = queue_.extract(it++);
      code->queue_key = code->last_used;
      node.value().first = code->queue_key;
      const auto put = queue_.insert(std::move(node)).position;
      // A code that was put before the place where we stand (a tick that ran backwards) must not be missed.
      if (it == queue_.end() || *put < *it) it = put;
      continue;
    }
    if (!code->pinned && code != spared) return code;
    ++it;
  }
  return nullptr;
}

}  // namespace tc::target
