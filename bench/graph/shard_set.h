// SPDX-License-Identifier: Apache-2.0
//
// The shard files of one graph: those of a directory, or generated ones in a temporary directory; and the answers that
// every search must give. Threads: any; it does not change once it is made.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "06-graph/graph.h"
#include "base/file.h"
#include "graph/graph_bench.h"

namespace tc::bench {

// The cost of one search, the same for all ways of searching.
struct SearchCost {
  uint64_t reached = 0, edges = 0, levels = 0;
  uint64_t bytes_to_client = 0, bytes_from_client = 0, bytes_between_servers = 0, requests = 0;
};

// Levels by vertex, BFS_UNREACHED where none is.
using Levels = std::vector<uint32_t>;

class ShardSet {
 public:
  // TC_ERR_INVALID when the files are not the parts of one graph for that number of servers.
  static Result<std::unique_ptr<ShardSet>> create(const GraphOptions& options);
  ShardSet(const ShardSet&) = delete;
  ShardSet& operator=(const ShardSet&) = delete;

  const std::string& directory() const noexcept { return directory_; }
  uint32_t vertices() const noexcept { return at(0).vertices; }
  uint64_t edges() const noexcept { return at(0).edges; }
  uint64_t degree(uint32_t vertex) const noexcept;

  // The search as a textbook has it, here. The same for all ways of searching.
  Levels search(uint32_t source, SearchCost& cost) const;

 private:
  ShardSet() = default;
  Status generate(const GraphOptions& options);
  Status load(uint32_t servers);
  const graph_shard& at(uint32_t index) const noexcept;

  std::string directory_;
  std::optional<TemporaryDirectory> generated_;
  std::vector<std::vector<uint64_t>> shards_;  // words, for alignment
};

std::string shard_file(const std::string& directory, uint32_t index);
// The bytes of a shard file, checked.
Result<std::vector<uint64_t>> read_shard(const std::string& file);

}  // namespace tc::bench
