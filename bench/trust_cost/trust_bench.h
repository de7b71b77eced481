// SPDX-License-Identifier: Apache-2.0
//
// `ifunc bench trust`: what a signature costs once for each never-seen code, how many encrypted connections a node accepts,
// and what a flood of handshakes does to the calls of a peer that is connected already. Thread: the one that measures.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "common/machine.h"
#include "common/statistics.h"

namespace tc::bench {

struct TrustOptions {
  int runs = 9;
  int samples = 50;         // never-seen ifuncs of each kind in one run
  uint32_t phase_ms = 300;  // of connecting, and of calls with and without a flood
  bool json = false;
};

// Of one call of never-seen code, over all runs.
struct FirstCall {
  Summary call_us;   // at the source, until the answer is there
  Summary first_us;  // at the target, last byte received to end of first execution
};

// Calls of an authenticated peer during one phase.
struct CallLatency {
  Summary median_us, p99_us;
};

struct TrustResult {
  TrustOptions options;
  Machine machine;
  FirstCall unsigned_code, signed_code;
  Summary signature_us;  // the difference of the two calls, run by run
  Summary connections_per_s;
  Summary handshake_cpu_us;  // of the target's threads for one connection, its polling thread left out
  CallLatency quiet, elsewhere, here;
  Summary flood_to_quiet, flood_to_elsewhere;  // ratios of the medians, run by run
  Summary flood_per_s;                         // half handshakes that the target answered
  uint64_t calls = 0;                          // all were answered
};

// Starts the other processes, measures, and gives the results. Fails if unsigned code of the signing peer is run.
Result<TrustResult> run_trust(const TrustOptions& options);
// The other processes: nodes that are called, and whoever connects to them over and over.
int run_trust_target(const std::string& keyring);
int run_trust_flood();

std::string format_table(const TrustResult& result);
std::string format_json(const TrustResult& result);

}  // namespace tc::bench
