// SPDX-License-Identifier: Apache-2.0
//
// `ifunc bench mixed`: what long calls of one client cost another client of the same target, beside UCX Active Messages.
// Thread: the one that measures.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "common/report.h"

namespace tc::bench {

struct MixedOptions {
  std::string transport = "shm";  // common/node.h
  uint32_t calls = 100;           // long calls that the first client keeps queued
  uint32_t long_us = 20'000;      // about as long does one of them run
  uint32_t phase_ms = 500;        // of small calls, alone and beside the queue, and of each rate, in a run
  int runs = 3;
  bool json = false;
};

// All long calls of a queue together take no longer, because a small call may have to wait for the whole queue.
inline constexpr uint64_t most_queue_ms = 30'000;

// Starts the target (mixed/measure.h), and measures. Progress goes to stderr. The JSON object: docs/measuring.md.
// TC_ERR_INVALID: the queue takes longer than most_queue_ms.
Result<Report> run_mixed(const MixedOptions& options);

}  // namespace tc::bench
