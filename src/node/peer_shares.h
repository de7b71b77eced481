// SPDX-License-Identifier: Apache-2.0
//
// What one peer may take of what all peers of a node share: links, and `message-memory`. A peer is a key, by however many
// links it comes. Processes of our own user, and keys that may run any code without a line of the keyring, have no limit of
// their own: they are the node's own side.
//
// Thread: the node's; a share may be given back to on any.
#pragma once

#include <map>
#include <memory>

#include "base/buffer_pool.h"
#include "trust/permission.h"

namespace tc::transport {
struct Origin;
}

namespace tc::node {

struct Config;

class PeerShares {
 public:
  // Of a key that may run nothing here (run=none): it can make calls, which are refused, and needs no more for that.
  static constexpr size_t links_to_run_nothing = 16;

  explicit PeerShares(const Config& config) noexcept;

  // May a peer with these rights, which has so many links here, have one more? TC_ERR_LIMIT has both numbers.
  Status may_add_link(const trust::Rights& rights, size_t links) const;
  // What may wait here for or of the peer, by all its links: half of `message-memory`, and the largest message in any case.
  // Null: it has no limit of its own. `rights`: null: it may not connect, but we connected to it.
  std::shared_ptr<MemoryBudget> memory_of(const transport::Origin& peer, const trust::Rights* rights);
  // The same of a key that has such a limit: one on whose behalf a call is made.
  std::shared_ptr<MemoryBudget> memory_of(const trust::PublicKey& key);

 private:
  const size_t most_links_;
  const size_t memory_;
  std::map<trust::PublicKey, std::weak_ptr<MemoryBudget>> shares_;
};

}  // namespace tc::node
