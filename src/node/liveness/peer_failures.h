// SPDX-License-Identifier: Apache-2.0
//
// Nodes that fail, and the calls that are lost with them. A node that loses its link to another one tells its peers, and
// they pass the event on. A node that waits for answers then asks where its calls are (snapshot.h). Calls that are nowhere
// fail, and their error names the node that failed.
//
// Thread: the node's.
#pragma once

#include <deque>
#include <set>
#include <utility>
#include <vector>

#include "node/liveness/snapshot.h"

namespace tc::node {

class PeerFailures {
 public:
  PeerFailures(const Common& common, Links& links, FutureTable& futures, Snapshots::EachCall each_call);

  // One of our links ended.
  void on_link_lost(const Link& link);
  // A peer tells something about the cluster: a node is gone, or a part of a snapshot. TC_ERR_MALFORMED.
  Status on_event(Link& from, uint32_t what, ByteView body);
  // Asks when it is time to; now and then.
  void tick();

  Snapshots& snapshots() noexcept { return snapshots_; }

 private:
  void on_gone(const Link& from, const wire::Gone& gone);
  bool is_news(const wire::Gone& gone);
  void spread(const wire::Gone& gone, const Link* from);
  void ask_soon();
  void on_snapshot(bool is_void, const std::unordered_set<uint64_t>& alive);

  const Common& common_;
  Links& links_;
  FutureTable& futures_;
  Snapshots snapshots_;
  uint64_t links_lost_ = 0;                                // by this node: each is news
  std::set<std::pair<uint64_t, uint64_t>> known_;          // the instance that is gone, the instance that saw it
  std::deque<std::pair<uint64_t, uint64_t>> known_order_;  // oldest first
  std::vector<uint64_t> asked_;                            // our calls that waited when the snapshot began
  uint64_t ask_at_ns_ = 0;                                 // 0: nothing to ask
};

}  // namespace tc::node
