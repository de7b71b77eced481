// SPDX-License-Identifier: Apache-2.0
//
// `ifunc bench trust`: what a signature costs once for each never-seen code, how many encrypted connections a node
// accepts, and what a flood of handshakes does to the calls of a peer that is connected already. Thread: the one that
// measures.
#pragma once

#include "common/processes.h"
#include "common/report.h"

namespace tc::bench {

struct TrustOptions {
  int runs = 9;
  int samples = 50;         // never-seen ifuncs of each kind in one run
  uint32_t phase_ms = 300;  // of connecting, and of calls with and without a flood
  bool json = false;
};

// Starts the other processes, and measures. Fails if unsigned code of the signing peer is run.
Result<Report> run_trust(const TrustOptions& options);
// The other processes (trust_cost/partners.cc): a node that is called, and one that connects to it over and over, with
// whole handshakes of a trusted peer, or with halves of a stranger.
Status serve_trust_target(const Arguments& arguments, Talk& talk);
Status serve_trust_flood(const Arguments& arguments, Talk& talk);

}  // namespace tc::bench
