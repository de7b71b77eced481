// SPDX-License-Identifier: Apache-2.0
//
// How a program joins a node to an event loop of its own.
#include <algorithm>

#include "node/node.h"

namespace tc::node {

// As before a sleep of our own (Node::block): everything that is due is done, so that only what comes can be missed. A
// future that ended of itself is something that happened: the program looks at it before it waits.
bool Node::arm(Deadline& deadline) {
  if (polling_) return false;
  const auto settled = futures_.settled();
  housekeep();
  if (poll() != 0 || futures_.settled() != settled || !local_calls_.empty()) return false;
  auto until = latest_end_of_sleep(deadline.at_ns());
  if (const auto next = futures_.next_deadline_ns(); next != 0)
    until = std::min(until, std::max(next, next_expiry_ns_));
  deadline = Deadline::at_ns(until);
  return transport_->arm(deadline);
}

}  // namespace tc::node
