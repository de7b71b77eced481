// SPDX-License-Identifier: Apache-2.0
//
// `ifunc bench bulk`: large payloads, in calls and in replies, beside memcpy, a raw stream through a socket, and UCX's
// Active Messages. Thread: the one that measures.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "bulk/measure.h"
#include "common/machine.h"
#include "common/placement.h"
#include "common/statistics.h"

namespace tc::bench {

struct BulkOptions {
  std::string transport = "shm";  // common/transport.h
  std::vector<uint64_t> sizes{64u << 10, 256u << 10, 1u << 20, 4u << 20, 16u << 20, 64u << 20, 256u << 20};
  int runs = 9;
  uint64_t run_bytes = 256u << 20;  // about as much does each way carry in one run
  bool json = false;
};

inline constexpr uint64_t least_bulk_bytes = 64, most_bulk_bytes = 256u << 20;

struct BulkPoint {
  uint64_t bytes = 0;
  uint64_t rounds = 0;                    // in one run
  std::map<BulkMode, Summary> rate;       // bytes per ns, which are GB per second
  std::map<BulkMode, Summary> to_memcpy;  // of the same run
  std::map<BulkMode, Summary> to_am;
  std::map<BulkMode, Summary> to_raw;    // over a network
  std::map<BulkMode, Summary> to_plain;  // of encrypted calls and replies
};

struct BulkResult {
  BulkOptions options;
  Machine machine;
  Placement placement;
  bool by_network = false;
  std::vector<BulkPoint> points;
};

// Starts the other process, measures, and gives the results. Progress goes to stderr when that is a terminal.
Result<BulkResult> run_bulk(const BulkOptions& options);
// The other process.
int run_bulk_target(const std::string& transport, uint64_t largest);

// A table, or one JSON object (docs/measuring.md).
std::string format_table(const BulkResult& result);
std::string format_json(const BulkResult& result);

}  // namespace tc::bench
