// SPDX-License-Identifier: Apache-2.0
//
// `ifunc bench dapc`: the distributed adaptive pointer chase (main paper, IV.C-D and V.C-D). docs/measuring.md says
// what is measured and how. Thread: the one that measures.
#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "common/processes.h"
#include "common/report.h"

namespace tc::bench {

struct DapcOptions {
  std::string transport = "tcp";  // or "shm"
  std::vector<uint32_t> servers{1, 2, 4, 8, 16};
  std::vector<uint32_t> depths{1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096};
  std::vector<uint32_t> inflight{1};
  int runs = 5;
  std::string chaser;                  // an .ifunc file that chases instead of chaser.c; empty: chaser.c
  std::vector<std::string> languages;  // whose chasers run beside C's: "julia", "rust"
  uint64_t shard_entries = 65'536;
  uint64_t seed = 42;
  uint32_t run_ms = 100;  // about so long does one mode chase in one run
  bool json = false;
  bool loopback = false;                    // no namespaces, even as root
  const std::atomic<bool>* stop = nullptr;  // set: end soon, with what there is
};

// Starts the servers, and measures; a wrong answer in any mode is an error. When `stop` ends it, the report holds the
// points that are done, and "complete" of its JSON is false.
Result<Report> run_dapc(const DapcOptions& options);
// A server's process (dapc/server.cc).
Status serve_dapc(const Arguments& arguments, Talk& talk);

}  // namespace tc::bench
