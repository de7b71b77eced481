// SPDX-License-Identifier: Apache-2.0
//
// `ifunc bench ucp-ifunc`: the papers' own API beside UCX Active Messages, over payload sizes (2021 paper, Figures 3 and
// 4). The ifunc and the Active Message's handler do the same: they count. They do not read the payload, as
// in the paper, unless an option says so. Thread: the one that measures.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "common/machine.h"
#include "common/statistics.h"

namespace tc::bench {

struct UcpIfuncOptions {
  std::string transport = "shm";     // or "tcp"
  std::string memory = "allocated";  // slots in memory that UCX allocated; "own": that the program allocated
  bool read = false;                 // the payload is read at the target, as well as counted
  int runs = 9;
  size_t largest = 1 << 20;
  bool json = false;
};

// One way to send ifuncs. `ratio` is its figure over the Active Message's, of the same run.
struct UcpIfuncWay {
  Summary latency_ns, latency_ratio, rate, rate_ratio;
};

// One payload size.
struct UcpIfuncRow {
  size_t payload = 0;
  Summary am_latency_ns, am_rate;
  UcpIfuncWay slots, send_receive;
};

struct UcpIfuncResult {
  UcpIfuncOptions options;
  Machine machine;
  std::string ucx_version;
  std::vector<UcpIfuncRow> rows;
};

// Starts the other process, measures, and gives the results.
Result<UcpIfuncResult> run_ucp_ifunc(const UcpIfuncOptions& options);
// The other process.
int run_ucp_ifunc_target(const UcpIfuncOptions& options);

// A table, or one JSON object (docs/measuring.md).
std::string format_ucp_ifunc(const UcpIfuncResult& result);

}  // namespace tc::bench
