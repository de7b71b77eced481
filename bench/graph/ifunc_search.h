// SPDX-License-Identifier: Apache-2.0
//
// The ifunc way: the example's code (examples/06-graph) between nodes of the public C API.
#pragma once

#include <threechains/threechains.h>

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "common/transport.h"
#include "graph/search_run.h"

struct bfs_client;

namespace tc::bench {

// A server's node: it exposes its shard and memory for one search, and has no code for graphs.
class IfuncSearchServer {
 public:
  struct Place {
    BenchTransport transport;
    std::string cluster;  // addresses of all servers, comma-separated
    std::string address;  // this one's
    std::string trust;
    uint32_t index;
  };
  // `shard` outlives it.
  static Result<std::unique_ptr<IfuncSearchServer>> create(const Place& place, std::span<std::byte> shard);
  ~IfuncSearchServer();
  void wait(uint32_t timeout_ms);
  // Waits until what was sent here is compiled for this CPU.
  Status settle();

 private:
  IfuncSearchServer() = default;
  tc_node_t* node_ = nullptr;
  std::vector<uint64_t> scratch_;
};

class IfuncSearch {
 public:
  static Result<std::unique_ptr<IfuncSearch>> create(const BenchTransport& transport, const std::string& host,
                                                     const std::string& trust, uint32_t vertices);
  ~IfuncSearch();
  Status connect(const std::vector<std::string>& servers);
  Status search(uint32_t source, SearchCost& cost);
  // The levels of the last search, from all servers.
  Result<const Levels*> collect(SearchCost& cost);

 private:
  IfuncSearch();
  tc_node_t* node_ = nullptr;
  tc_ifunc_t* read_ = nullptr;
  std::unique_ptr<bfs_client> client_;
  Levels levels_;
};

}  // namespace tc::bench
