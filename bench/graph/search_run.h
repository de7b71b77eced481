// SPDX-License-Identifier: Apache-2.0
//
// The cost of one search, the same for all ways of searching. Threads: any.
#pragma once

#include <cstdint>
#include <vector>

namespace tc::bench {

struct SearchCost {
  uint64_t reached = 0, edges = 0, levels = 0;
  uint64_t bytes_to_client = 0, bytes_from_client = 0, bytes_between_servers = 0, requests = 0;
};

// Levels by vertex, BFS_UNREACHED where none is.
using Levels = std::vector<uint32_t>;

}  // namespace tc::bench
