// SPDX-License-Identifier: Apache-2.0
//
// `ifunc bench tsi`: target-side increment, the papers' micro-benchmark (main paper, IV.B, V.A and V.B).
// Thread: the one that measures.
#pragma once

#include <string>

#include "base/result.h"
#include "common/report.h"

namespace tc::bench {

struct TsiOptions {
  std::string transport = "shm";  // common/node.h
  int runs = 9;
  uint64_t latency_rounds = 0;  // 0: as many as take a few ten milliseconds on this transport
  uint64_t rate_calls = 0;
  int first_samples = 200;  // never-seen ifuncs sent for first_execution_us
  bool json = false;
};

// Starts the other process (tsi/measure.h), and measures. Progress goes to stderr.
// Tables in the papers' form, or one JSON object (docs/measuring.md).
Result<Report> run_tsi(const TsiOptions& options);

}  // namespace tc::bench
