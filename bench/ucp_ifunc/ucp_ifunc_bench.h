// SPDX-License-Identifier: Apache-2.0
//
// `ifunc bench ucp-ifunc`: the papers' own API beside UCX Active Messages, over payload sizes (2021 paper, Figures 3
// and 4). The ifunc and the Active Message's handler do the same: they count. They do not read the payload, as in the
// paper, unless an option says so. Thread: the one that measures.
#pragma once

#include <string>

#include "common/processes.h"
#include "common/report.h"

namespace tc::bench {

struct UcpIfuncOptions {
  std::string transport = "shm";     // or "tcp"
  std::string memory = "allocated";  // slots in memory that UCX allocated; "own": that the program allocated
  bool read = false;                 // the payload is read at the target, as well as counted
  int runs = 9;
  size_t largest = 1 << 20;
  bool json = false;
};

// Starts the other process, and measures. A table, or one JSON object (docs/measuring.md).
Result<Report> run_ucp_ifunc(const UcpIfuncOptions& options);
// The other process.
Status serve_ucp_ifunc(const Arguments& arguments, Talk& talk);

}  // namespace tc::bench
