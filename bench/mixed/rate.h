// SPDX-License-Identifier: Apache-2.0
//
// How many calls per second a target runs that do nothing but compute, and how many its CPUs would. Thread: the one that
// measures.
#pragma once

#include <cstdint>
#include <span>

#include "mixed/burn_work.h"
#include "mixed/client.h"

namespace tc::bench {

struct Rate {
  double calls_per_s = 0;
  double client_cpu = 0;  // CPU time of this process, as a share of one CPU
};

// Each client keeps `window` long calls in flight for `phase_ms`. The clock stops when the last one is answered. Between two
// polls the thread sleeps, so that the target has the CPUs.
Result<Rate> measure_rate(std::span<MixedClient* const> clients, uint32_t window, uint32_t phase_ms);

// The same work on so many threads of this process, without calls.
double rate_without_calls(const BurnWork& work, uint32_t threads, uint32_t phase_ms);

}  // namespace tc::bench
