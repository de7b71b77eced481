// SPDX-License-Identifier: Apache-2.0
//
// `ifunc bench bulk`: large payloads, in calls and in replies, beside memcpy, a raw stream through a socket, and UCX's
// Active Messages. Thread: the one that measures.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "common/report.h"

namespace tc::bench {

struct BulkOptions {
  std::string transport = "shm";  // common/node.h
  std::vector<uint64_t> sizes{64u << 10, 256u << 10, 1u << 20, 4u << 20, 16u << 20, 64u << 20, 256u << 20};
  int runs = 9;
  uint64_t run_bytes = 256u << 20;  // about as much does each way carry in one run
  bool json = false;
};

inline constexpr uint64_t least_bulk_bytes = 64, most_bulk_bytes = 256u << 20;

// Starts the other process (bulk/measure.h), and measures. Progress goes to stderr when that is a terminal.
// The JSON object: docs/measuring.md.
Result<Report> run_bulk(const BulkOptions& options);

}  // namespace tc::bench
