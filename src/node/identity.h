// SPDX-License-Identifier: Apache-2.0
//
// The identity of a node: for its peers, and in messages.
//
// Thread: written while the node starts, read by the node's thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "trust/key_pair.h"

namespace tc::node {

struct Identity {
  // The number in the greeting of a node that is in no cluster.
  static constexpr uint32_t no_id = ~uint32_t{0};

  uint64_t instance = 0;  // of this process, ever: random, never 0
  uint32_t id = 0;
  std::string name;
  std::string label;                 // "node 3 (name)"
  std::string address;               // that peers connect to; empty: this node does not listen
  std::string last_words;            // of the node that listened there before, if a fatal signal ended it
  std::vector<std::string> cluster;  // addresses of all nodes by number; empty: no cluster
  // Their keys, for which the launcher vouches; empty: no launcher did.
  std::vector<trust::PublicKey> cluster_keys;

  uint32_t wire_id() const noexcept { return cluster.empty() && id == 0 ? no_id : id; }
  uint32_t count() const noexcept { return std::max<uint32_t>(1, static_cast<uint32_t>(cluster.size())); }
};

}  // namespace tc::node
