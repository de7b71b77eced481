// SPDX-License-Identifier: Apache-2.0
//
// The ifunc way: the example's code (examples/06-graph) between nodes of the public C API.
// Thread: the one that measures.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/node.h"
#include "graph/shard_set.h"

struct bfs_client;

namespace tc::bench {

class IfuncSearch {
 public:
  static Result<std::unique_ptr<IfuncSearch>> create(const BenchTransport& transport, const std::string& host,
                                                     uint32_t vertices);
  ~IfuncSearch();
  Status connect(const std::vector<std::string>& servers);
  Status search(uint32_t source, SearchCost& cost);
  // The levels of the last search, from all servers.
  Result<const Levels*> collect(SearchCost& cost);

 private:
  explicit IfuncSearch(threechains::Node node);
  threechains::Node node_;
  std::optional<threechains::Ifunc> step_, read_;
  std::vector<threechains::Endpoint> servers_;
  std::unique_ptr<bfs_client> client_;  // the example's client, which is C: handles of the above
  Levels levels_;
};

}  // namespace tc::bench
