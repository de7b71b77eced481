// SPDX-License-Identifier: Apache-2.0
//
// `ifunc bench graph`: breadth-first search over a sharded graph (examples/06-graph), by ifuncs that run at the servers
// and by a client that fetches rows with GETs. docs/measuring.md says what is measured and how.
// Thread: the one that measures.
#pragma once

#include <array>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "common/machine.h"
#include "common/statistics.h"

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

enum class SearchMode : uint8_t {
  ifunc,            // levels stay at the servers, the client gets counts
  ifunc_collected,  // and then fetches all levels
  get,              // the client fetches offsets and rows
  get_indexed,      // the client holds all offsets beforehand, and fetches rows
};
inline constexpr std::array search_modes{SearchMode::ifunc, SearchMode::ifunc_collected, SearchMode::get,
                                         SearchMode::get_indexed};
constexpr const char* mode_name(SearchMode mode) noexcept {
  constexpr std::array<const char*, 4> names{"ifunc", "ifunc_collected", "get", "get_indexed"};
  return names[static_cast<size_t>(mode)];
}
constexpr bool is_ifunc(SearchMode mode) noexcept {
  return mode == SearchMode::ifunc || mode == SearchMode::ifunc_collected;
}

struct ModeResult {
  Summary searches_per_s, edges_per_s;
  Summary ratio_to_get, ratio_to_get_indexed;
  double bytes_to_client = 0, bytes_from_client = 0, bytes_between_servers = 0;  // payloads of one search, means
  double requests = 0;  // calls or GETs of the client in one search, mean
};

struct GraphResult {
  GraphOptions options;
  Machine machine;
  std::string why_no_namespaces;
  bool namespaces = false;
  uint32_t vertices = 0;
  uint64_t edges = 0;
  double reached = 0, edges_searched = 0, levels = 0;  // of one search, means
  uint64_t verified = 0;                               // searches whose levels were all compared
  std::map<SearchMode, ModeResult> modes;
};

// Starts the servers, measures, and compares every answer; a wrong one is an error.
Result<GraphResult> run_graph(const GraphOptions& options);
std::string format_table(const GraphResult& result);
std::string format_json(const GraphResult& result);

// A server's process, started by run_graph().
struct GraphServerOptions {
  std::string transport, shard, host, rendezvous;
  uint32_t index = 0, servers = 0;
};
int run_graph_server(const GraphServerOptions& options);

}  // namespace tc::bench
