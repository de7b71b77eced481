// SPDX-License-Identifier: Apache-2.0
//
// `ifunc bench graph`: breadth-first search over a sharded graph (examples/06-graph), by ifuncs that run at the servers
// and by a client that fetches rows with GETs. docs/measuring.md says what is measured and how.
// Thread: the one that measures.
#pragma once

#include <string>

#include "common/processes.h"
#include "common/report.h"

namespace tc::bench {

struct GraphOptions {
  std::string transport = "tcp";  // or "shm"
  uint32_t servers = 4;
  std::string shards;  // a directory of make_shards; empty: a generated graph
  uint32_t scale = 16;
  uint32_t edge_factor = 16;
  uint64_t seed = 1;
  uint32_t searches = 4;  // of each mode in one run
  int runs = 7;
  uint32_t get_window = 64;  // GETs on their way at a time, at most
  bool loopback = false;     // no namespaces, even as root
  bool json = false;
};

// Starts the servers, measures, and compares every answer; a wrong one is an error.
Result<Report> run_graph(const GraphOptions& options);
// A server's process: it holds a shard, and serves whichever of the two ways is being measured.
Status serve_graph(const Arguments& arguments, Talk& talk);

}  // namespace tc::bench
